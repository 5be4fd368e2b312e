// Who waits, who is next and who is refused, in virtual time; and that no request and no place is
// ever lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "gateway/test_crowd.h"

namespace fullstop::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Waiting, WhatHasNoPlaceWaitsAndGoesOnWhenOneIsFree) {
    Crowd crowd(Crowd::policy_of(1, 2));
    const auto a = crowd.ask(), b = crowd.ask(), c = crowd.ask();
    EXPECT_TRUE(crowd.passed_on(a) && crowd.passed_on(b));
    EXPECT_FALSE(crowd.passed_on(c));
    EXPECT_EQ(crowd.gateway.waiting(), 1U);
    crowd.pass(milliseconds(1500));
    crowd.answer(a);
    EXPECT_TRUE(crowd.passed_on(c));
    crowd.answer(c);
    EXPECT_THAT(crowd[a].seen.head(), HasSubstr("Fullstop-Queue-Ms: 0\r\n"));
    EXPECT_THAT(crowd[c].seen.head(), HasSubstr("Fullstop-Queue-Ms: 1500\r\n"));
    EXPECT_TRUE(crowd[c].seen.kept);
    EXPECT_THAT(
        crowd.page("/metrics"),
        AllOf(HasSubstr("fullstop_gateway_queue_seconds_count{class=\"normal\"} 3"),
              HasSubstr("fullstop_gateway_queue_seconds_sum{class=\"normal\"} 1.5"),
              HasSubstr("fullstop_gateway_requests_running{upstream=\"127.0.0.1:9001\"} 1")));
}

TEST(Waiting, EightUsersInAPoolForThreeAreServedThreeByThree) {
    Crowd crowd(Crowd::policy_of(1));
    crowd.act([&](Actions& out) {
        crowd.gateway.learned(1,
                              {.server = "llama-server", .slots = 8, .pool = 1024, .window = 1024},
                              crowd.now, out);
    });
    const std::string body =
        R"({"stream":true,"max_tokens":250,"messages":[{"role":"user","content":")" +
        std::string(100, 'x') + "\"}]}";
    std::vector<net::ConnectionId> all;
    for (int i = 0; i < 8; ++i) all.push_back(crowd.ask(body));
    std::size_t ended = 0;
    while (ended < all.size()) {
        std::vector<net::ConnectionId> running;
        for (const auto id : all)
            if (crowd.passed_on(id) && !crowd.over(id)) running.push_back(id);
        ASSERT_FALSE(running.empty());
        ASSERT_LE(running.size(), 3U);
        crowd.answer(running.front());
        ++ended;
    }
    for (const auto id : all) EXPECT_EQ(crowd[id].seen.record().end.reason, "stop");
}

/// What a request asks for beyond every window is not what it can come to.
TEST(Waiting, OneRequestWithAHugeLimitLeavesTheOthersTheirPlaceInTheQueue) {
    for (const std::optional<std::int64_t> window :
         {std::optional<std::int64_t>(4096), std::optional<std::int64_t>()}) {
        Crowd crowd(Crowd::policy_of(1, 1));
        crowd.act([&](Actions& out) {
            crowd.gateway.learned(1, {.server = "x", .slots = {}, .pool = {}, .window = window},
                                  crowd.now, out);
        });
        const auto first = crowd.ask();
        std::vector<net::ConnectionId> waiting = {
            crowd.ask(R"({"stream":true,"max_tokens":10000000})"),
            crowd.ask(R"({"stream":true,"max_tokens":1e30})")};
        for (int i = 0; i < 8; ++i) waiting.push_back(crowd.ask());
        EXPECT_EQ(crowd.gateway.waiting(), 10U);
        crowd.answer(first);
        for (const auto id : waiting) {
            crowd.answer(id);
            EXPECT_EQ(crowd[id].seen.record().end.reason, "stop");
        }
    }
}

TEST(Waiting, APoolThatRanFullIsLearnedFromTheServersOwnWords) {
    Crowd crowd(Crowd::policy_of(1));
    crowd.act([&](Actions& out) {
        crowd.gateway.learned(1, {.server = "llama-server", .slots = 8, .pool = {}, .window = 1024},
                              crowd.now, out);
    });
    const std::string body = R"({"stream":true,"max_tokens":400})";
    const auto a = crowd.ask(body), b = crowd.ask(body), c = crowd.ask(body);
    for (const auto id : {a, b, c}) {
        crowd.connect(id);
        crowd.receive(id, Crowd::stream_head() + Crowd::piece());
    }
    for (const auto id : {a, b, c})
        crowd.receive(
            id,
            wire::chunk(wire::sse_event(
                R"({"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}})")) +
                wire::last_chunk());
    const auto d = crowd.ask(body), e = crowd.ask(body), f = crowd.ask(body);
    EXPECT_TRUE(crowd.passed_on(d) && crowd.passed_on(e));
    EXPECT_FALSE(crowd.passed_on(f)) << "two of 432 fill 1024";
}

TEST(Waiting, ALongRequestThatWaitsIsNotPassedBySmallOnes) {
    Crowd crowd(Crowd::policy_of(1));
    crowd.act([&](Actions& out) {
        crowd.gateway.learned(1,
                              {.server = "llama-server", .slots = 8, .pool = 1000, .window = 1000},
                              crowd.now, out);
    });
    const auto first = crowd.ask(R"({"max_tokens":500})");
    const auto large = crowd.ask(R"({"max_tokens":900})");
    const auto small = crowd.ask(R"({"max_tokens":10})");
    EXPECT_TRUE(crowd.passed_on(first));
    EXPECT_FALSE(crowd.passed_on(large) || crowd.passed_on(small));
    crowd.leave(first);
    EXPECT_TRUE(crowd.passed_on(large) && crowd.passed_on(small)) << "932 and 42 fit 1000";
}

TEST(Waiting, WhoLeavesIsOutOfTheQueueAtOnce) {
    Crowd crowd(Crowd::policy_of(1, 1));
    const auto a = crowd.ask(), b = crowd.ask(), c = crowd.ask();
    crowd.leave(b);
    EXPECT_EQ(crowd.gateway.waiting(), 1U);
    EXPECT_TRUE(crowd.closed.empty()) << "it had no connection";
    crowd.leave(a);
    EXPECT_TRUE(crowd.passed_on(c));
    EXPECT_THAT(
        crowd.page("/metrics"),
        HasSubstr(
            "fullstop_answers_total{cause=\"client_cancelled\",layer=\"client\",upstream=\"\"} 1"));
}

TEST(Waiting, AFullQueueIs429WithAnEstimate) {
    Policy policy = Crowd::policy_of(1, 1);
    policy.queue.requests = 1;
    Crowd crowd(policy);
    const auto a = crowd.ask();
    crowd.ask();
    const auto c = crowd.ask();
    EXPECT_TRUE(crowd.over(c));
    EXPECT_EQ(crowd[c].seen.record().status, 429);
    EXPECT_THAT(crowd[c].seen.raw,
                AllOf(HasSubstr("Retry-After: 1\r\n"), HasSubstr("gateway_rejected"),
                      HasSubstr("1 requests wait already (limit 1)")));
    EXPECT_TRUE(crowd[c].seen.kept);
    crowd.answer(a);
    EXPECT_FALSE(crowd.over(crowd.ask())) << "the place is free again";
}

TEST(Waiting, ThePaceOfEndsMakesTheEstimate) {
    Policy policy = Crowd::policy_of(1, 1);
    policy.queue.requests = 3;
    Crowd crowd(policy);
    std::vector<net::ConnectionId> all;
    for (int i = 0; i < 4; ++i) all.push_back(crowd.ask());
    crowd.answer(all[0]);
    crowd.pass(seconds(5));
    crowd.answer(all[1]);
    for (int i = 0; i < 2; ++i) crowd.ask();
    const auto refused = crowd.ask();
    EXPECT_THAT(crowd[refused].seen.raw, HasSubstr("Retry-After: 15\r\n"))
        << "three ahead, one end in five seconds";
}

TEST(Waiting, TooLongInTheQueueIs503AndSaysSo) {
    Policy policy = Crowd::policy_of(1, 1);
    policy.deadlines.queue_wait = seconds(7);
    Crowd crowd(policy);
    crowd.ask();
    const auto b = crowd.ask();
    crowd.pass(seconds(6));
    EXPECT_FALSE(crowd.over(b));
    crowd.pass(seconds(1));
    EXPECT_EQ(crowd[b].seen.record().status, 503);
    EXPECT_THAT(crowd[b].seen.raw,
                AllOf(HasSubstr("Retry-After: 7\r\n"),
                      HasSubstr("\"cause\":\"gateway_deadline\",\"by\":\"gateway\""),
                      HasSubstr("\"limit\":\"queue_wait\",\"limit_ms\":7E3,\"elapsed_ms\":7E3")));
    EXPECT_EQ(crowd.gateway.waiting(), 0U);
}

TEST(Waiting, ClassesComeFromTheBodyAndAWrongOneIsRefused) {
    Crowd crowd(Crowd::policy_of(1, 1));
    const auto a = crowd.ask();
    const auto batch = crowd.ask(R"({"fullstop":{"priority":"batch"}})");
    const auto normal = crowd.ask();
    const auto urgent = crowd.ask(R"({"fullstop":{"priority":"interactive"}})");
    const auto wrong = crowd.ask(R"({"fullstop":{"priority":"now"}})");
    EXPECT_EQ(crowd[wrong].seen.record().status, 400);
    EXPECT_THAT(crowd[wrong].seen.raw,
                HasSubstr("fullstop.priority must be interactive, normal or batch, not 'now'"));
    crowd.leave(a);
    EXPECT_TRUE(crowd.passed_on(urgent));
    crowd.leave(urgent);
    EXPECT_TRUE(crowd.passed_on(normal));
    crowd.leave(normal);
    EXPECT_TRUE(crowd.passed_on(batch));
}

TEST(Waiting, AFloorKeepsAPlaceFreeForItsClassButNotForEver) {
    Policy policy = Crowd::policy_of(1, 2);
    policy.queue.floors[static_cast<std::size_t>(Priority::kInteractive)] = 1;
    policy.queue.ageing = seconds(10);
    Crowd crowd(policy);
    const auto a = crowd.ask(), b = crowd.ask();
    EXPECT_TRUE(crowd.passed_on(a));
    EXPECT_FALSE(crowd.passed_on(b)) << "the second place is kept";
    const auto urgent = crowd.ask(R"({"fullstop":{"priority":"interactive"}})");
    EXPECT_TRUE(crowd.passed_on(urgent));
    crowd.leave(urgent);
    EXPECT_FALSE(crowd.passed_on(b));
    crowd.pass(seconds(20));
    EXPECT_TRUE(crowd.passed_on(b)) << "overdue";
}

TEST(Waiting, ClientsShareByTokens) {
    Crowd crowd(Crowd::policy_of(1, 1));
    const auto first = crowd.ask(R"({"max_tokens":1000})", "Bearer greedy");
    std::vector<net::ConnectionId> greedy;
    for (int i = 0; i < 3; ++i)
        greedy.push_back(crowd.ask(R"({"max_tokens":1000})", "Bearer greedy"));
    const auto modest = crowd.ask(R"({"max_tokens":10})", "Bearer modest");
    crowd.answer(first);
    EXPECT_TRUE(crowd.passed_on(modest)) << "though three came before it";
    EXPECT_THAT(crowd.page("/metrics") + crowd.page("/fullstop/status"), Not(HasSubstr("greedy")))
        << "no key is shown";
}

TEST(Waiting, OtherRequestsDoNotWait) {
    Crowd crowd(Crowd::policy_of(1, 1));
    crowd.ask();
    EXPECT_TRUE(crowd.passed_on(crowd.ask("{}", "", "/tokenize")));
}

/// Requests of any kind come, are answered, fail and leave in any order: each ends exactly once, no
/// place is lost, and what runs never exceeds what there is room for.
RC_GTEST_PROP(WaitingProperty, NothingIsLostAndNothingExceedsItsPlaces, ()) {
    const int upstreams = *rc::gen::inRange(1, 4), places = *rc::gen::inRange(1, 4);
    Policy policy = Crowd::policy_of(upstreams, places);
    policy.queue.requests = static_cast<std::size_t>(*rc::gen::inRange(0, 12));
    policy.deadlines.queue_wait = seconds(*rc::gen::inRange(5, 100));
    policy.queue.floors = {*rc::gen::inRange(0, 3), 0, *rc::gen::inRange(0, 2)};
    policy.heartbeat = seconds(4);
    Crowd crowd(policy);
    std::set<net::ConnectionId> open;
    const auto count = [&] {
        std::map<int, int> running;
        for (const auto id : open)
            if (crowd.passed_on(id) && crowd.gateway.request_of(crowd[id].connection) == id)
                ++running[crowd[id].upstream];
        return running;
    };
    for (int step = 0; step < 120; ++step) {
        const int what = *rc::gen::inRange(0, 10);
        std::vector<net::ConnectionId> running;
        for (const auto id : open)
            if (crowd.gateway.request_of(crowd[id].connection) == id) running.push_back(id);
        const auto any = [&](const auto& among) {
            return *std::next(among.begin(),
                              *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(among)));
        };
        if (what < 4) {
            const auto* priority = *rc::gen::element<const char*>("interactive", "normal", "batch");
            open.insert(
                crowd.ask(std::string(R"({"stream":true,"max_tokens":9,"fullstop":{"priority":")") +
                              priority + "\"}}",
                          *rc::gen::element("", "a", "b")));
        } else if (what < 6 && !running.empty()) {
            crowd.answer(any(running));
        } else if (what == 6 && !running.empty()) {
            crowd.refuse_connection(any(running));
        } else if (what == 7 && !open.empty()) {
            const auto id = any(open);
            if (!crowd.over(id)) crowd.leave(id);
            open.erase(id);
        } else if (what == 8 && !running.empty()) {
            const auto id = any(running);
            crowd.connect(id);
            crowd.receive(id, wire::whole_response(503, "application/json",
                                                   R"({"error":{"message":"busy"}})"));
        } else {
            crowd.pass(milliseconds(*rc::gen::inRange(0, 3000)));
        }
        std::erase_if(open, [&](const auto id) { return crowd.over(id); });
        for (const auto& [upstream, n] : count()) RC_ASSERT(n <= places);
        RC_ASSERT(crowd.gateway.running() == open.size());
    }
    for (int round = 0; round < 200 && !open.empty();
         ++round) {  // whoever is still there is answered in the end
        for (const auto id : std::vector(open.begin(), open.end()))
            if (crowd.gateway.request_of(crowd[id].connection) == id) crowd.answer(id);
        crowd.pass(seconds(1));
        std::erase_if(open, [&](const auto id) { return crowd.over(id); });
    }
    RC_ASSERT(open.empty());
    RC_ASSERT(crowd.gateway.waiting() == 0);
}

}  // namespace
}  // namespace fullstop::gateway
