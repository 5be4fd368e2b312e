// Each endpoint's text becomes facts with their source, or a reason; shapes that are not known
// change nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "observe/observer.h"
#include "observe/prometheus.h"
#include "observe/server_json.h"
#include "observe/test_samples.h"

namespace fullstop::observe {
namespace {

using answer::Provenance;
using answer::Sample;
using answer::ServerFacts;
using testing::HasSubstr;

TEST(Props, GiveWindowAndSlotsButNotWhetherTheyShare) {
    ServerFacts facts;
    read_props(samples::kLlamaProps, facts);
    EXPECT_EQ(facts.name, "llama-server");
    EXPECT_EQ(facts.version, "b1-0c1e570");
    EXPECT_EQ(facts.window.value->count, 1024);
    EXPECT_EQ(facts.slots.value, 8);
    EXPECT_FALSE(facts.shared_pool);
    EXPECT_THAT(facts.shared_pool.how, HasSubstr("does not say whether the 8 slots share"));
    EXPECT_FALSE(facts.pool);
    EXPECT_FALSE(facts.default_max_tokens);
    EXPECT_THAT(facts.default_max_tokens.how, HasSubstr("until the window is full"));
    EXPECT_FALSE(facts.output_deadline_ms);
    EXPECT_THAT(facts.kv_bytes_per_token.how, HasSubstr("log"));
}

TEST(Props, OneSlotIsItsOwnPool) {
    ServerFacts facts;
    read_props(
        R"({"default_generation_settings":{"n_ctx":4096,"params":{"n_predict":256,"t_max_predict_ms":30000}},"total_slots":1})",
        facts);
    EXPECT_EQ(facts.pool.value->count, 4096);
    EXPECT_EQ(facts.pool.from, Provenance::kDerived);
    EXPECT_EQ(facts.shared_pool.value, false);
    EXPECT_EQ(facts.default_max_tokens.value->count, 256);
    EXPECT_EQ(facts.output_deadline_ms.value, 30000);
}

TEST(Slots, GiveWhatPropsLeftOpenAndTheMomentsLoad) {
    ServerFacts facts;
    read_slots(samples::kLlamaSlots, facts);
    EXPECT_EQ(facts.slots.value, 3);
    EXPECT_EQ(facts.window.value->count, 1024);
    Sample sample;
    sample_slots(samples::kLlamaSlots, sample);
    EXPECT_EQ(sample.running, 1);
    EXPECT_EQ(sample.counters.at("slots.tokens_running"), 103);
    EXPECT_EQ(sample.counters.at("slots.tokens_held"), 340)
        << "an idle slot keeps its answer cached";
}

TEST(Models, ListNamesAndTheWindowWhereTold) {
    ServerFacts facts;
    std::vector<std::string> models;
    read_models(samples::kVllmModels, facts, models);
    EXPECT_THAT(models, testing::ElementsAre("smol"));
    EXPECT_EQ(facts.model, "smol");
    EXPECT_EQ(facts.window.value->count, 1024);
    EXPECT_EQ(facts.window.how, "/v1/models max_model_len");
    EXPECT_EQ(owner_of(samples::kVllmModels), "vllm");
}

TEST(Models, AnEmptyListLeavesNoModel) {
    ServerFacts facts;
    std::vector<std::string> models{"old"};
    read_models(R"({"object":"list","data":[]})", facts, models);
    EXPECT_TRUE(models.empty());
    EXPECT_EQ(facts.model, "");
}

TEST(Ollama, WhatRunsOutranksWhatTheModelFileSays) {
    ServerFacts facts;
    facts.model = "smol:latest";
    read_ollama_ps(samples::kOllamaPs, facts);
    read_ollama_show(samples::kOllamaShow, facts);
    EXPECT_EQ(facts.window.value->count, 4096);
    EXPECT_EQ(facts.shared_pool.value, false);
    EXPECT_EQ(facts.default_max_tokens.value->count, 128);

    ServerFacts cold;
    read_ollama_ps(R"({"models":[]})", cold);
    read_ollama_show(samples::kOllamaShow, cold);
    EXPECT_EQ(cold.window.value->count, 2048);

    ServerFacts bare;
    read_ollama_show(R"({"parameters":"","model_info":{"llama.context_length":8192}})", bare);
    EXPECT_FALSE(bare.window);
    EXPECT_THAT(bare.window.how, HasSubstr("by free VRAM"));
}

TEST(Ollama, AnotherModelsWindowIsNotTaken) {
    ServerFacts facts;
    facts.model = "other:latest";
    read_ollama_ps(samples::kOllamaPs, facts);
    EXPECT_FALSE(facts.window);
}

TEST(FullstopStatus, GivesEverythingWithItsSource) {
    ServerFacts facts;
    ASSERT_TRUE(read_fullstop_status(samples::kFullstopStatus, facts));
    EXPECT_EQ(facts.name, "fullstop");
    EXPECT_EQ(facts.window.value->count, 2048);
    EXPECT_EQ(facts.pool.value->count, 16384);
    EXPECT_EQ(facts.slots.value, 8);
    EXPECT_EQ(facts.max_queue.value, 64);
    EXPECT_EQ(facts.shared_pool.value, false);
    EXPECT_EQ(facts.kv_bytes_per_token.value->count, 12240);
    EXPECT_EQ(facts.kv_bytes_per_token.from, Provenance::kReported);
    Sample sample;
    sample_fullstop_status(samples::kFullstopStatus, sample);
    EXPECT_EQ(sample.kv_used, 0.25);
    EXPECT_EQ(sample.running, 5);
    EXPECT_EQ(sample.waiting, 2);
}

TEST(OtherServers, AreRecognisedByWhatOnlyTheySay) {
    ServerFacts tgi;
    EXPECT_TRUE(read_tgi_info(samples::kTgiInfo, tgi));
    EXPECT_EQ(tgi.pool.value->count, 16384);
    EXPECT_EQ(tgi.max_queue.value, 128);
    ServerFacts sglang;
    EXPECT_TRUE(read_sglang_info(samples::kSglangInfo, sglang));
    EXPECT_EQ(sglang.pool.value->count, 20000);
    EXPECT_EQ(sglang.slots.value, 32);
    ServerFacts kobold;
    EXPECT_TRUE(read_koboldcpp_version(R"({"result":"KoboldCpp","version":"1.102"})", kobold));
    EXPECT_TRUE(read_koboldcpp_context(R"({"value":8192})", kobold));
    EXPECT_EQ(kobold.window.value->count, 8192);
    ServerFacts nobody;
    EXPECT_FALSE(
        read_fullstop_status(R"({"server":"fullstop","role":"gateway","version":"1"})", nobody))
        << "a gateway is not the server behind it";
    EXPECT_FALSE(read_tgi_info("{}", nobody) || read_sglang_info("{}", nobody) ||
                 read_koboldcpp_version("{}", nobody) || read_fullstop_status("{}", nobody));
    EXPECT_EQ(nobody.name, "unknown");
}

TEST(Readers, UnknownShapesAndGarbageChangeNothing) {
    for (const std::string text :
         {"", "{", "null", "[]", "[1,2]", "{\"data\":5}", "{\"models\":[1]}", "<html>",
          "{\"default_generation_settings\":7,\"total_slots\":{}}", "{\"model_info\":[]}",
          "[{\"n_ctx\":\"many\"}]", "{\"data\":[{\"id\":7,\"max_model_len\":-3}]}", "\xff\xfe",
          "{\"pool\":1e400}"}) {
        ServerFacts facts;
        std::vector<std::string> models;
        Sample sample;
        read_props(text, facts);
        read_slots(text, facts);
        read_ollama_ps(text, facts);
        read_ollama_show(text, facts);
        read_models(text, facts, models);
        read_metrics_facts(text, facts);
        read_prometheus(text, sample);
        sample_slots(text, sample);
        sample_fullstop_status(text, sample);
        EXPECT_EQ(facts.name, "unknown") << text;
        EXPECT_FALSE(facts.window || facts.pool || facts.slots || facts.shared_pool ||
                     facts.default_max_tokens)
            << text;
        EXPECT_TRUE(models.empty()) << text;
        EXPECT_FALSE(sample.running || sample.waiting || sample.kv_used || sample.preemptions)
            << text;
    }
}

TEST(Prometheus, LlamaServersGaugesAndCounters) {
    Sample sample;
    read_prometheus(samples::kLlamaMetrics, sample);
    EXPECT_EQ(sample.running, 8);
    EXPECT_EQ(sample.waiting, 3);
    EXPECT_FALSE(sample.kv_used);
    EXPECT_EQ(sample.counters.at("llamacpp:tokens_predicted_total"), 1337);
    EXPECT_FALSE(sample.counters.contains("llamacpp:predicted_tokens_seconds"));
}

TEST(Prometheus, VllmsGaugesCountersAndPool) {
    Sample sample;
    read_prometheus(samples::kVllmMetrics, sample);
    EXPECT_EQ(sample.running, 6);
    EXPECT_EQ(sample.waiting, 2);
    EXPECT_DOUBLE_EQ(*sample.kv_used, 0.9365079365079365);
    EXPECT_EQ(sample.preemptions, 4);
    EXPECT_EQ(sample.counters.at("vllm:request_success_total{finished_reason=abort}"), 1);
    ServerFacts facts;
    read_metrics_facts(samples::kVllmMetrics, facts);
    EXPECT_EQ(facts.pool.value->count, 2016);
    EXPECT_EQ(facts.shared_pool.value, true);
}

TEST(Prometheus, SeveralEnginesAddUpButTheirSharesDoNot) {
    Sample sample;
    read_prometheus(
        "vllm:num_requests_running{engine=\"0\"} 2\nvllm:num_requests_running{engine=\"1\"} "
        "3\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.4\n"
        "vllm:kv_cache_usage_perc{engine=\"1\"} 0.7\n",
        sample);
    EXPECT_EQ(sample.running, 5);
    EXPECT_EQ(sample.kv_used, 0.7);
}

TEST(Prometheus, SpellingsAreReadAndBrokenLinesCostOnlyThemselves) {
    Sample sample;
    read_prometheus(
        "fullstop_requests_running{a=\"quo\\\"te, }\",b=\"x\"} 1e1 1796013000000\r\n"
        "vllm:num_requests_waiting NaN\nvllm:num_requests_waiting{ 4\nvllm:num_requests_waiting "
        "5x\n\nnonsense\n= 4\n"
        "  sglang:num_queue_reqs{} +3\n"
        "sglang:num_retracted_requests 2",
        sample);
    EXPECT_EQ(sample.running, 10);
    EXPECT_EQ(sample.waiting, 3);
    EXPECT_EQ(sample.preemptions, 2) << "without _total";
}

TEST(Prometheus, CountersAreBounded) {
    std::string text;
    for (int i = 0; i < 5000; ++i) text += "vllm:x" + std::to_string(i) + "_total 1\n";
    Sample sample;
    read_prometheus(text, sample);
    EXPECT_EQ(sample.counters.size(), 96u);
}

}  // namespace
}  // namespace fullstop::observe
