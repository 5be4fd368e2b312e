// Sixty-one answers of real servers and gateways: their end facts are read exactly as they
// happened.
#include <gmock/gmock.h>
#include <boost/json.hpp>

#include <filesystem>
#include <map>
#include <set>

#include "tests/support/source_dir.h"
#include "wire/captures/capture.h"
#include "wire/test_samples.h"

namespace fullstop::wire {
namespace {

using answer::Record;
using answer::Transport;

Record only(const std::string& name) {
    auto records = read_capture(golden(name));
    EXPECT_TRUE(records) << name;
    if (!records) return {};
    EXPECT_EQ(records->size(), 1U) << name;
    return std::move(records->front());
}

/// What is true of every file whose name starts with `prefix`.
struct Truth {
    std::string prefix;
    std::string reason;  ///< "" for none
    std::string error;   ///< a part of its text; "" for none
    bool terminator;
    Transport transport;
    int least_events;
    std::int64_t output;  ///< reported; -1 for not reported
};

const std::vector<Truth> kTruths = {
    {"direct_stream_n1_", "length", "", true, Transport::kClean, 400, 400},
    {"direct_stream_n8_", "", "Context size has been exceeded.", false, Transport::kClean, 73, -1},
    {"direct_nostream_n8_", "", "Context size has been exceeded.", true, Transport::kClean, 0, -1},
    {"litellm_stream_n8_", "", "Context size has been exceeded.", false, Transport::kClean, 73, -1},
    {"litellm_oll-v1_runnerkill9_", "stop", "", true, Transport::kClean, 157, 157},
    {"ollama_v1_runnerkill9_", "", "", false, Transport::kClean, 30, -1},
    {"ollama_native_runnerkill9_", "", "unexpected EOF", false, Transport::kClean, 30, -1},
    {"ollama_repeatlimit_v1", "", "", false, Transport::kUnknown, 30, -1},
    {"nginx10_stall_", "", "", false, Transport::kTruncated, 50, -1},
    {"nginx11_http10client_stall_", "", "", false, Transport::kUnknown, 80, -1},
    {"envoy_default15s_rerun_n1_", "length", "", true, Transport::kClean, 400, 400},
    {"envoy_default15s_rerun_n8_", "", "", false, Transport::kTruncated, 241, -1},
    {"litellm_timeout_stall_", "", "Request timed out", false, Transport::kClean, 50, -1},
    {"nginx_18188_uvicorn_kill9_", "", "", false, Transport::kTruncated, 80, -1},
    {"nginx_18187_uvicorn_ok_", "length", "", true, Transport::kClean, 10, 10},
    {"haproxy_stall_", "", "", false, Transport::kTruncated, 40, -1},
    {"ollama_v1_ctx1024_", "length", "", true, Transport::kClean, 400, 400},
    {"litellm_fake_close10_", "stop", "", true, Transport::kClean, 20, 41},
    {"litellm_nostream_timeout3_", "", "Request timed out", true, Transport::kClean, 0, -1},
    {"vllm-cpu-preempted-n8_", "length", "", true, Transport::kClean, 300, 400},
};

std::vector<std::string> captured_files() {
    std::vector<std::string> out;
    for (const auto& entry :
         std::filesystem::directory_iterator(tests::source_dir() / "tests/golden/captures"))
        if (entry.path().filename() != "index.json") out.push_back(entry.path().filename());
    return out;
}

TEST(GoldenCaptures, the_index_names_every_file) {
    std::set<std::string> named;
    const auto index = boost::json::parse(golden("index.json"));
    for (const auto& each : index.at("cases").as_array())
        for (const auto& file : each.at("files").as_array()) named.emplace(file.as_string());
    const auto files = captured_files();
    EXPECT_EQ(named, std::set<std::string>(files.begin(), files.end()));
    EXPECT_EQ(named.size(), 61U);
}

TEST(GoldenCaptures, end_facts_are_those_that_happened) {
    std::size_t checked = 0;
    for (const auto& name : captured_files()) {
        for (const Truth& truth : kTruths) {
            if (!name.starts_with(truth.prefix)) continue;
            ++checked;
            const Record record = only(name);
            EXPECT_EQ(record.end.reason.value_or(""), truth.reason) << name;
            EXPECT_EQ(record.end.error.has_value(), !truth.error.empty()) << name;
            if (record.end.error)
                EXPECT_THAT(record.end.error->text, testing::HasSubstr(truth.error)) << name;
            EXPECT_EQ(record.end.terminator, truth.terminator) << name;
            EXPECT_EQ(record.end.transport, truth.transport) << name;
            EXPECT_GE(record.text_events, truth.least_events) << name;
            EXPECT_EQ(record.text.empty(), truth.least_events == 0) << name;
            EXPECT_EQ(record.output_tokens ? (*record.output_tokens).count : -1, truth.output)
                << name;
            EXPECT_EQ(record.unread_events, 0) << name;
        }
    }
    EXPECT_EQ(checked, 45U);
}

TEST(GoldenCaptures, vllm_in_bf16_ends_by_itself_at_these_lengths) {
    const std::map<std::string, std::vector<std::int64_t>> lengths = {
        {"n1", {8, 60, 400, 208, 400, 17, 400, 400}}, {"n8", {8, 60, 400, 108, 34, 34, 83, 400}}};
    for (const auto& [level, expected] : lengths) {
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const Record record =
                only("vllm-cpu-bf16-" + level + "_" + std::to_string(i) + ".jsonl");
            EXPECT_EQ((*record.output_tokens).count, expected[i]);
            EXPECT_EQ(record.end.reason, expected[i] == 400 ? "length" : "stop");
            EXPECT_TRUE(record.end.terminator);
            EXPECT_EQ(record.end.transport, Transport::kClean);
            EXPECT_EQ((*record.requested_max_tokens).count, 400);
            EXPECT_EQ(record.request.seed, 7 + static_cast<std::int64_t>(i));
            EXPECT_EQ(record.request.api, answer::Api::kOpenAiChat);
            EXPECT_FALSE(record.text.empty());
        }
    }
}

TEST(GoldenCaptures, a_preempted_answer_shows_its_pause_as_one_gap) {
    int paused = 0;
    for (int i = 0; i < 8; ++i) {
        const Record record = only("vllm-cpu-preempted-n8_" + std::to_string(i) + ".jsonl");
        ASSERT_FALSE(record.timeline.gaps.empty());
        const double longest = base::to_seconds(*std::ranges::max_element(record.timeline.gaps));
        paused += longest >= 12 && longest <= 30;
        EXPECT_EQ(record.timeline.gaps.size() + 1, static_cast<std::size_t>(record.text_events));
        EXPECT_TRUE(record.ttft());
    }
    EXPECT_EQ(paused, 4);
}

TEST(GoldenCaptures, an_ollama_runner_killed_behind_v1_leaves_an_empty_model_name) {
    EXPECT_EQ(only("ollama_v1_runnerkill9_n1_0.raw").response_model, "");
    EXPECT_EQ(only("ollama_v1_ctx1024_n1_0.raw").response_model, "smol");
}

TEST(GoldenCaptures, litellm_says_500_as_text_and_announces_its_timeout) {
    const Record error = only("litellm_stream_n8_0.raw");
    EXPECT_EQ(error.end.error->code, "500");
    EXPECT_EQ(error.end.error->status, 500);
    const Record timeout = only("litellm_nostream_timeout3_n1_0.raw");
    EXPECT_EQ(timeout.status, 408);
    EXPECT_EQ(timeout.end.error->where, answer::ErrorPlace::kHttp);
    EXPECT_DOUBLE_EQ(*timeout.gateway_deadline_ms, 3000);
}

TEST(GoldenCaptures, moments_a_raw_file_does_not_hold_stay_absent) {
    const Record record = only("direct_stream_n1_0.raw");
    EXPECT_FALSE(record.timeline.first_token);
    EXPECT_TRUE(record.timeline.gaps.empty());
    EXPECT_FALSE(record.requested_max_tokens);
    EXPECT_EQ((*record.prompt_tokens).count, 55);
}

}  // namespace
}  // namespace fullstop::wire
