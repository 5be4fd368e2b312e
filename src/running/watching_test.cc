// What the gateway learns of servers as they really answer: limits once, load each second, and anew
// when one comes back.
#include "running/watching.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "observe/test_samples.h"
#include "observe/test_server.h"

namespace fullstop::running {
namespace {

using observe::TestServer;
using std::chrono::seconds;

struct Learned {
    explicit Learned(std::string api_key = {})
        : watch(*wire::parse_server_url("http://server:8080"), std::move(api_key),
                {.learned =
                     [this](gateway::Capacity capacity) {
                         capacities.push_back(std::move(capacity));
                     },
                 .loaded =
                     [this](const gateway::Load& load) { loads.push_back(load), each_load(); }}) {}
    std::vector<gateway::Capacity> capacities;
    std::vector<gateway::Load> loads;
    std::function<void()> each_load = [] {};
    Watching watch;
};

TestServer llama_server() {
    TestServer server;
    server.json("/v1/models", std::string(observe::samples::kLlamaModels));
    server.json("/props", std::string(observe::samples::kLlamaProps));
    server.json("/slots", std::string(observe::samples::kLlamaSlots));
    server.replies["/metrics"] =
        TestServer::http(200, std::string(observe::samples::kLlamaMetrics), "text/plain");
    return server;
}

TEST(Watching, SlotsOfALlamaServerAreTakenToShareOnePool) {
    TestServer server = llama_server();
    Learned learned;
    server.run(learned.watch, seconds(5));
    ASSERT_EQ(learned.capacities.size(), 1U);
    EXPECT_EQ(learned.capacities[0].slots, 8);
    EXPECT_EQ(learned.capacities[0].pool, 1024);
    EXPECT_EQ(learned.capacities[0].window, 1024);
    EXPECT_FALSE(learned.capacities[0].models.empty());
    ASSERT_GE(learned.loads.size(), 4U) << "about once a second";
    EXPECT_LE(learned.loads.size(), 6U);
    EXPECT_EQ(learned.loads.back().running, 8);
    EXPECT_EQ(learned.loads.back().waiting, 3);
}

TEST(Watching, WhoShowsItsPromptsMayWriteTheRestOfAnAnswer) {
    for (const auto& [name, continues] : {std::pair{"llama-server", true},
                                          {"fullstop", true},
                                          {"vllm", false},
                                          {"ollama", false}}) {
        observe::Identity identity;
        identity.facts.name = name;
        EXPECT_EQ(capacity_of(identity, true).continues, continues) << name;
    }
}

TEST(Watching, EveryQuestionCarriesTheKeyOfTheServer) {
    for (const std::string key : {"sk-7", ""}) {
        TestServer server = llama_server();
        Learned learned(key);
        server.run(learned.watch, seconds(3));
        ASSERT_GE(server.requests.size(), 8U);
        for (const std::string& request : server.requests) {
            EXPECT_EQ(request.find("Authorization") != std::string::npos, !key.empty()) << request;
            EXPECT_EQ(request.find("Authorization: Bearer sk-7\r\n") != std::string::npos,
                      !key.empty())
                << request;
        }
    }
}

TEST(Watching, SlotsThatHoldMoreThanOneWindowHaveACacheEach) {
    TestServer server = llama_server();
    server.json(
        "/slots",
        R"([{"id":0,"n_ctx":1024,"is_processing":false,"n_prompt_tokens":800},{"id":1,"n_ctx":1024,"is_processing":false,"n_prompt_tokens":600}])");
    Learned learned;
    server.run(learned.watch, seconds(3));
    ASSERT_EQ(learned.capacities.size(), 2U);
    EXPECT_EQ(learned.capacities[0].pool, 1024);
    EXPECT_EQ(learned.capacities[1].pool, std::nullopt);
    EXPECT_EQ(learned.capacities[1].slots, 8);
}

TEST(Watching, AFullPoolIsNotTakenForACacheOfEachSlot) {
    TestServer server = llama_server();
    // Two idle slots of a pool of 1024 that ran full, with their last tokens; and one whose prompt
    // is still read.
    server.json(
        "/slots",
        R"([{"id":0,"is_processing":false,"n_prompt_tokens":513},{"id":1,"is_processing":false,"n_prompt_tokens":513},)"
        R"({"id":2,"is_processing":true,"n_prompt_tokens":900}])");
    Learned learned;
    server.run(learned.watch, seconds(3));
    ASSERT_EQ(learned.capacities.size(), 1U);
    EXPECT_EQ(learned.capacities[0].pool, 1024);
}

TEST(Watching, AServerThatAdmitsByItselfIsLimitedByItsSlotsOnly) {
    TestServer server;
    server.json("/v1/models", R"({"data":[{"id":"m"}]})");
    server.json("/fullstop/status", std::string(observe::samples::kFullstopStatus));
    Learned learned;
    server.run(learned.watch, seconds(2));
    ASSERT_EQ(learned.capacities.size(), 1U);
    EXPECT_EQ(learned.capacities[0].slots, 8);
    EXPECT_EQ(learned.capacities[0].pool, std::nullopt);
}

/// Passes everything on, and lets the server come up at a moment.
struct ComesUp final : net::Part {
    net::Part& part;
    TestServer& server;
    base::Instant when;
    ComesUp(net::Part& inner, TestServer& of, base::Instant at)
        : part(inner), server(of), when(at) {}
    void start(base::Instant now, net::Actions& out) override { part.start(now, out); }
    void on(const net::Event& event, net::Actions& out) override {
        if (event.at >= when) server.refuses.reset();
        part.on(event, out);
    }
    bool done() const override { return part.done(); }
};

TEST(Watching, AServerThatIsDownIsAskedAgainAndLearnedWhenItComes) {
    TestServer server = llama_server();
    server.refuses = net::ConnectFailed{0, net::ConnectFailure::kRefused, "Connection refused"};
    Learned learned;
    ComesUp part(learned.watch, server, server.now() + seconds(8));
    server.run(part, seconds(7));
    EXPECT_TRUE(learned.capacities.empty());
    EXPECT_TRUE(server.asked.empty());
    TestServer again = llama_server();
    again.refuses = server.refuses;
    Learned later;
    ComesUp up(later.watch, again, again.now() + seconds(8));
    again.run(up, seconds(20));
    EXPECT_EQ(later.capacities.size(), 1U);
    EXPECT_FALSE(later.loads.empty());
}

TEST(Watching, AServerThatFallsSilentIsAskedWhoItIs) {
    TestServer server = llama_server();
    Learned learned;
    learned.each_load = [&] {
        if (learned.loads.size() != 2) return;
        server.replies.erase("/slots");
        server.replies.erase("/metrics");
    };
    server.run(learned.watch, seconds(30));
    EXPECT_GE(learned.capacities.size(), 2U);
}

}  // namespace
}  // namespace fullstop::running
