// Beside the load: one sample a round, whatever the server does, and never more than one question
// open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "observe/observer.h"
#include "observe/test_samples.h"
#include "observe/test_server.h"

namespace fullstop::observe {
namespace {

using namespace std::chrono_literals;

struct Watch {
    TestServer server;
    answer::ServerFacts facts;
    wire::ServerUrl url{.host = "127.0.0.1",
                        .port = 8080,
                        .tls = false,
                        .base_path = "",
                        .query = "",
                        .text = "http://127.0.0.1:8080"};
    std::vector<answer::Sample> samples;

    void run(base::Duration time, std::size_t stop_after = 1'000'000) {
        Sampler* running = nullptr;
        Sampler part(url, {{"X-Key", "k"}}, facts, "deployed", server.now() - 10s, 1s,
                     [&](answer::Sample sample) {
                         samples.push_back(std::move(sample));
                         if (samples.size() >= stop_after) running->stop();
                     });
        running = &part;
        server.run(part, time);
    }
};

TEST(Sampler, AsksWhatIdentifySawOncePerRound) {
    Watch watch;
    watch.facts.raw = {{"/metrics", ""}, {"/slots", ""}, {"/v1/models", ""}};
    watch.server.replies["/metrics"] =
        TestServer::http(200, std::string(samples::kLlamaMetrics), "text/plain");
    watch.server.json("/slots", std::string(samples::kLlamaSlots));
    watch.run(4500ms);
    ASSERT_EQ(watch.samples.size(), 5u);
    EXPECT_EQ(watch.server.asked.size(), 10u);
    EXPECT_EQ(watch.server.most_open, 1u);
    EXPECT_THAT(watch.server.requests[0], testing::HasSubstr("X-Key: k"));
    for (std::size_t i = 0; i < watch.samples.size(); ++i) {
        EXPECT_EQ(watch.samples[i].at, 10s + i * 1s) << "relative to the start of the run";
        EXPECT_EQ(watch.samples[i].arm, "deployed");
        EXPECT_EQ(watch.samples[i].running, 8) << "/metrics outranks /slots";
        EXPECT_EQ(watch.samples[i].counters.at("slots.tokens_held"), 340);
    }
}

TEST(Sampler, EndsWhenStopped) {
    Watch watch;
    watch.run(1h, 3);
    EXPECT_EQ(watch.samples.size(), 3u);
}

TEST(Sampler, AServerWithNothingToAskStillGivesSamplesForTheMachinesMemory) {
    Watch watch;
    watch.run(2500ms);
    EXPECT_EQ(watch.samples.size(), 3u);
    EXPECT_TRUE(watch.server.asked.empty());
}

TEST(Sampler, ASilentEndpointIsAskedLessAndNeverTwiceAtOnce) {
    Watch watch;
    watch.facts.raw = {{"/metrics", ""}};
    watch.server.silent.insert("/metrics");
    watch.run(60s);
    EXPECT_EQ(watch.server.most_open, 1u);
    EXPECT_LE(watch.server.asked.size(), 8u);
    EXPECT_GT(watch.samples.size(), 30u);
}

TEST(Sampler, AnEndpointThatComesBackIsReadAgain) {
    Watch watch;
    watch.facts.raw = {{"/fullstop/status", ""}};
    watch.server.replies["/fullstop/status"] = TestServer::http(503, "{}");
    watch.run(5s);
    EXPECT_FALSE(watch.samples.back().kv_used);
    watch.server.json("/fullstop/status", std::string(samples::kFullstopStatus));
    watch.run(15s);
    EXPECT_EQ(watch.samples.back().kv_used, 0.25);
}

TEST(Sampler, AMetricsPageOfItsOwnIsAskedDirectly) {
    Watch watch;
    watch.url.base_path = "/internal/metrics";
    watch.server.replies["/internal/metrics"] =
        TestServer::http(200, std::string(samples::kVllmMetrics), "text/plain");
    watch.run(500ms);
    EXPECT_THAT(watch.server.asked, testing::ElementsAre("GET /internal/metrics"));
    EXPECT_EQ(watch.samples.at(0).preemptions, 4);
}

TEST(Sampler, AnInterruptionEndsItAndClosesItsConnection) {
    Watch watch;
    watch.facts.raw = {{"/metrics", ""}};
    watch.server.silent.insert("/metrics");
    watch.server.interrupt(2s);
    watch.run(1h);
    EXPECT_EQ(watch.server.open(), 0u);
}

}  // namespace
}  // namespace fullstop::observe
