// What a gateway's policy does to requests, in virtual time: they wait, are placed, tried elsewhere, limited, cut by a
// clock with its own name, or refused; and nothing of it makes a cut answer look whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "gateway/test_crowd.h"

namespace fullstop::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kWholeJson = R"({"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]})";

// Waiting -----------------------------------------------------------------------------------------------------------------

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
    EXPECT_THAT(crowd.page("/metrics"), AllOf(HasSubstr("fullstop_gateway_queue_seconds_count{class=\"normal\"} 3"),
                                              HasSubstr("fullstop_gateway_queue_seconds_sum{class=\"normal\"} 1.5"),
                                              HasSubstr("fullstop_gateway_requests_running{upstream=\"127.0.0.1:9001\"} 1")));
}

TEST(Waiting, EightUsersInAPoolForThreeAreServedThreeByThree) {
    Crowd crowd(Crowd::policy_of(1));
    crowd.act([&](Actions& out) { crowd.gateway.learned(1, {.server = "llama-server", .slots = 8, .pool = 1024, .window = 1024}, crowd.now, out); });
    const std::string body = R"({"stream":true,"max_tokens":250,"messages":[{"role":"user","content":")" + std::string(100, 'x') + "\"}]}";
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

TEST(Waiting, APoolThatRanFullIsLearnedFromTheServersOwnWords) {
    Crowd crowd(Crowd::policy_of(1));
    crowd.act([&](Actions& out) { crowd.gateway.learned(1, {.server = "llama-server", .slots = 8, .pool = {}, .window = 1024}, crowd.now, out); });
    const std::string body = R"({"stream":true,"max_tokens":400})";
    const auto a = crowd.ask(body), b = crowd.ask(body), c = crowd.ask(body);
    for (const auto id : {a, b, c}) {
        crowd.connect(id);
        crowd.receive(id, Crowd::stream_head() + Crowd::piece());
    }
    for (const auto id : {a, b, c})
        crowd.receive(id, wire::chunk(wire::sse_event(R"({"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}})")) +
                              wire::last_chunk());
    const auto d = crowd.ask(body), e = crowd.ask(body), f = crowd.ask(body);
    EXPECT_TRUE(crowd.passed_on(d) && crowd.passed_on(e));
    EXPECT_FALSE(crowd.passed_on(f)) << "two of 432 fill 1024";
}

TEST(Waiting, ALongRequestThatWaitsIsNotPassedBySmallOnes) {
    Crowd crowd(Crowd::policy_of(1));
    crowd.act([&](Actions& out) { crowd.gateway.learned(1, {.server = "llama-server", .slots = 8, .pool = 1000, .window = 1000}, crowd.now, out); });
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
    EXPECT_THAT(crowd.page("/metrics"), HasSubstr("fullstop_answers_total{cause=\"client_cancelled\",layer=\"client\",upstream=\"\"} 1"));
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
    EXPECT_THAT(crowd[c].seen.raw, AllOf(HasSubstr("Retry-After: 1\r\n"), HasSubstr("gateway_rejected"), HasSubstr("1 requests wait already (limit 1)")));
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
    EXPECT_THAT(crowd[refused].seen.raw, HasSubstr("Retry-After: 15\r\n")) << "three ahead, one end in five seconds";
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
    EXPECT_THAT(crowd[b].seen.raw, AllOf(HasSubstr("Retry-After: 7\r\n"), HasSubstr("\"cause\":\"gateway_deadline\",\"by\":\"gateway\""),
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
    EXPECT_THAT(crowd[wrong].seen.raw, HasSubstr("fullstop.priority is interactive, normal or batch, not 'now'"));
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
    for (int i = 0; i < 3; ++i) greedy.push_back(crowd.ask(R"({"max_tokens":1000})", "Bearer greedy"));
    const auto modest = crowd.ask(R"({"max_tokens":10})", "Bearer modest");
    crowd.answer(first);
    EXPECT_TRUE(crowd.passed_on(modest)) << "though three came before it";
    EXPECT_THAT(crowd.page("/metrics") + crowd.page("/fullstop/status"), Not(HasSubstr("greedy"))) << "no key is shown";
}

TEST(Waiting, OtherRequestsDoNotWait) {
    Crowd crowd(Crowd::policy_of(1, 1));
    crowd.ask();
    EXPECT_TRUE(crowd.passed_on(crowd.ask("{}", "", "/tokenize")));
}

/// Requests of any kind come, are answered, fail and leave in any order: each ends exactly once, no place is lost, and what
/// runs never exceeds what there is room for.
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
            if (crowd.passed_on(id) && crowd.gateway.request_of(crowd[id].connection) == id) ++running[crowd[id].upstream];
        return running;
    };
    for (int step = 0; step < 120; ++step) {
        const int what = *rc::gen::inRange(0, 10);
        std::vector<net::ConnectionId> running;
        for (const auto id : open)
            if (crowd.gateway.request_of(crowd[id].connection) == id) running.push_back(id);
        const auto any = [&](const auto& among) { return *std::next(among.begin(), *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(among))); };
        if (what < 4) {
            const auto* priority = *rc::gen::element<const char*>("interactive", "normal", "batch");
            open.insert(
                crowd.ask(std::string(R"({"stream":true,"max_tokens":9,"fullstop":{"priority":")") + priority + "\"}}", *rc::gen::element("", "a", "b")));
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
            crowd.receive(id, wire::whole_response(503, "application/json", R"({"error":{"message":"busy"}})"));
        } else {
            crowd.pass(milliseconds(*rc::gen::inRange(0, 3000)));
        }
        std::erase_if(open, [&](const auto id) { return crowd.over(id); });
        for (const auto& [upstream, n] : count()) RC_ASSERT(n <= places);
        RC_ASSERT(crowd.gateway.running() == open.size());
    }
    for (int round = 0; round < 200 && !open.empty(); ++round) {  // whoever is still there is answered in the end
        for (const auto id : std::vector(open.begin(), open.end()))
            if (crowd.gateway.request_of(crowd[id].connection) == id) crowd.answer(id);
        crowd.pass(seconds(1));
        std::erase_if(open, [&](const auto id) { return crowd.over(id); });
    }
    RC_ASSERT(open.empty());
    RC_ASSERT(crowd.gateway.waiting() == 0);
}

// Heartbeats --------------------------------------------------------------------------------------------------------------

struct Beating : testing::Test {
    static Policy policy() {
        Policy out = Crowd::policy_of(1, 1);
        out.heartbeat = seconds(10);
        out.deadlines.idle = seconds(60);
        return out;
    }
    Crowd crowd{policy()};
};

TEST_F(Beating, AWaitingStreamGetsItsHeadAndCommentsAndThenTheAnswer) {
    const auto a = crowd.ask(), b = crowd.ask();
    crowd.pass(seconds(25));
    EXPECT_THAT(crowd[b].seen.raw,
                AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Fullstop-Heartbeat-Ms: 10000\r\n"), Not(HasSubstr("Fullstop-Queue-Ms"))));
    EXPECT_EQ(crowd[b].seen.record().comments, 2);
    crowd.connect(a);
    crowd.receive(a, Crowd::stream_head() + Crowd::piece());
    EXPECT_EQ(crowd[a].seen.record().comments, 3) << "two beats of a long prefill, and one line about the upstream";
    crowd.receive(a, Crowd::ending());
    crowd.answer(b);
    for (const auto id : {a, b}) {
        const answer::Record record = crowd[id].seen.record();
        EXPECT_EQ(record.end.reason, "stop");
        EXPECT_TRUE(record.end.terminator);
        EXPECT_EQ(record.text, "hi");
        EXPECT_TRUE(crowd[id].seen.kept);
    }
    EXPECT_THAT(crowd[b].seen.body(), HasSubstr(": fullstop upstream=127.0.0.1:9001 status=200 queue_ms=25000\n\n"));
}

TEST_F(Beating, NoCommentFallsIntoAnAnswerThatHasBegun) {
    const auto a = crowd.ask();
    crowd.connect(a);
    crowd.receive(a, Crowd::stream_head());
    crowd.pass(seconds(11));
    EXPECT_EQ(crowd[a].seen.record().comments, 1) << "the head alone is no answer yet";
    crowd.receive(a, Crowd::piece().substr(0, 30));
    crowd.pass(seconds(30));
    EXPECT_EQ(crowd[a].seen.record().comments, 1);
}

TEST_F(Beating, WhoAskedForNoStreamHearsNothing) {
    crowd.ask();
    for (const auto* body : {R"({"stream":false})", "{}"}) {
        const auto id = crowd.ask(body);
        crowd.pass(seconds(20));
        EXPECT_EQ(crowd[id].seen.raw, "");
    }
    const auto lines = crowd.ask(R"({"stream":true})", "", "/api/chat");
    crowd.pass(seconds(20));
    EXPECT_EQ(crowd[lines].seen.raw, "") << "lines of JSON have no comments";
}

TEST_F(Beating, AnErrorBehindHeartbeatsComesInsideTheStream) {
    const std::string error = R"({"error":{"message":"no such model","code":404}})";
    const auto a = crowd.ask();
    crowd.pass(seconds(15));
    crowd.connect(a);
    crowd.receive(a, wire::whole_response(404, "application/json", error));
    EXPECT_TRUE(crowd.over(a));
    EXPECT_THAT(crowd[a].seen.body(), AllOf(HasSubstr("data: " + error + "\n\n"), HasSubstr("status=404"), Not(HasSubstr("[DONE]"))));
    EXPECT_FALSE(crowd[a].seen.raw.ends_with("\r\n0\r\n\r\n"));
    EXPECT_FALSE(crowd[a].seen.kept);
    EXPECT_TRUE(crowd[a].seen.record().end.error);
    EXPECT_THAT(crowd.page("/metrics"), HasSubstr("cause=\"request_rejected\""));
}

TEST_F(Beating, AFailureBehindHeartbeatsComesInsideTheStream) {
    const auto a = crowd.ask(), b = crowd.ask();
    crowd.pass(seconds(15));
    crowd.refuse_connection(a);
    EXPECT_THAT(crowd[a].seen.body(), HasSubstr("\"cause\":\"engine_death\",\"by\":\"upstream\""));
    EXPECT_FALSE(crowd[a].seen.raw.ends_with("\r\n0\r\n\r\n"));
    crowd.connect(b);
    crowd.receive(b, wire::whole_response(200, "application/json", kWholeJson));
    EXPECT_THAT(crowd[b].seen.body(), HasSubstr("answered in one piece where a stream was asked for"));
    EXPECT_FALSE(crowd[b].seen.raw.ends_with("\r\n0\r\n\r\n"));
    EXPECT_FALSE(crowd[b].seen.kept);
}

// Deadlines ---------------------------------------------------------------------------------------------------------------

TEST(Deadlines, EachCutNamesItsLimitAndItsTimes) {
    Policy policy = Crowd::policy_of(1);
    policy.deadlines = {.queue_wait = {}, .first_token = seconds(20), .idle = seconds(8), .total = seconds(30)};
    {
        Crowd crowd(policy);
        const auto a = crowd.ask();
        crowd.connect(a);
        crowd.receive(a, Crowd::stream_head());
        for (int i = 0; i < 19; ++i) crowd.pass(seconds(1)), crowd.receive(a, wire::chunk(": still there\n\n"));
        EXPECT_FALSE(crowd.over(a));
        crowd.pass(seconds(2));
        EXPECT_THAT(crowd[a].seen.body(),
                    AllOf(HasSubstr("\"cause\":\"gateway_deadline\""), HasSubstr("\"limit\":\"first_token\",\"limit_ms\":2E4,\"elapsed_ms\":2E4"),
                          HasSubstr("no token from the upstream 20.0 s after it got the request (limit 20.0 s)")));
    }
    {
        Crowd crowd(policy);
        const auto a = crowd.ask();
        crowd.connect(a);
        crowd.receive(a, Crowd::stream_head());
        EXPECT_THAT(crowd[a].seen.head(), HasSubstr("Fullstop-Deadline-Ms: 30000\r\n"));
        for (int i = 0; i < 29; ++i) crowd.pass(seconds(1)), crowd.receive(a, Crowd::piece());
        EXPECT_FALSE(crowd.over(a));
        crowd.pass(seconds(2));
        EXPECT_THAT(crowd[a].seen.body(),
                    AllOf(HasSubstr("\"cause\":\"gateway_deadline\""), HasSubstr("\"limit\":\"total\",\"limit_ms\":3E4,\"elapsed_ms\":3E4"),
                          HasSubstr("the total limit of 30.0 s is over"), HasSubstr("\"deadline_ms\":3E4")));
        EXPECT_FALSE(crowd[a].seen.raw.ends_with("\r\n0\r\n\r\n"));
        EXPECT_EQ(crowd.closed.size(), 1U) << "the upstream works for nobody";
    }
    {
        Crowd crowd(policy);
        const auto a = crowd.ask();
        crowd.connect(a);
        crowd.receive(a, Crowd::stream_head() + Crowd::piece());
        crowd.pass(seconds(9));
        EXPECT_THAT(crowd[a].seen.body(), AllOf(HasSubstr("\"cause\":\"gateway_idle_timeout\""), HasSubstr("\"limit\":\"idle\"")));
    }
}

TEST(Deadlines, TheClientsOwnLimitCountsWhenItIsTheShorterOne) {
    Policy policy = Crowd::policy_of(1);
    policy.deadlines.total = seconds(30);
    Crowd crowd(policy);
    const auto a = crowd.ask(R"({"stream":true,"fullstop":{"deadline_ms":4000}})"), b = crowd.ask(R"({"stream":true,"fullstop":{"deadline_ms":90000}})");
    for (const auto id : {a, b}) {
        crowd.connect(id);
        crowd.receive(id, Crowd::stream_head() + Crowd::piece());
    }
    EXPECT_THAT(crowd[a].seen.head(), HasSubstr("Fullstop-Deadline-Ms: 4000\r\n"));
    EXPECT_THAT(crowd[b].seen.head(), HasSubstr("Fullstop-Deadline-Ms: 30000\r\n"));
    crowd.pass(seconds(5));
    EXPECT_THAT(crowd[a].seen.body(), HasSubstr("\"limit\":\"total\",\"limit_ms\":4E3"));
    EXPECT_FALSE(crowd.over(b));
    for (const auto* wrong : {"0", "-5", "\"soon\"", "1e99"}) {
        const auto id = crowd.ask(std::string(R"({"fullstop":{"deadline_ms":)") + wrong + "}}");
        EXPECT_EQ(crowd[id].seen.record().status, 400) << wrong;
        EXPECT_THAT(crowd[id].seen.body(), HasSubstr("fullstop.deadline_ms")) << wrong;
    }
}

TEST(Deadlines, BeforeTheHeadADeadlineIs504) {
    Policy policy = Crowd::policy_of(2);
    policy.deadlines.first_token = seconds(3);
    Crowd crowd(policy);
    const auto a = crowd.ask();
    crowd.pass(seconds(4));
    EXPECT_EQ(crowd[a].seen.record().status, 504);
    EXPECT_THAT(crowd[a].seen.head(), HasSubstr("x-should-retry: true\r\n")) << "the other upstream may be faster";
}

// Other upstreams ---------------------------------------------------------------------------------------------------------

TEST(Elsewhere, AFailedConnectionAndA503AreTriedAtAnotherUpstreamOnce) {
    Crowd crowd(Crowd::policy_of(3));
    const auto a = crowd.ask();
    const int first = crowd[a].upstream;
    crowd.refuse_connection(a);
    EXPECT_EQ(crowd[a].seen.raw, "");
    EXPECT_NE(crowd[a].upstream, first);
    crowd.connect(a);
    crowd.receive(a, wire::whole_response(503, "application/json", R"({"error":{"message":"Loading model"}})"));
    EXPECT_EQ(crowd[a].attempts, 3);
    EXPECT_EQ(crowd[a].seen.raw, "") << "nothing of the 503 went on";
    crowd.answer(a);
    EXPECT_THAT(crowd[a].seen.head(),
                AllOf(HasSubstr("Fullstop-Attempts: 3\r\n"), HasSubstr("Fullstop-Upstream: 127.0.0.1:900" + std::to_string(crowd[a].upstream))));
    EXPECT_EQ(crowd[a].seen.record().text, "hi");
    EXPECT_THAT(crowd.page("/metrics"), HasSubstr("fullstop_gateway_retries_total{upstream=\"127.0.0.1:900" + std::to_string(first) + "\"} 1"));
}

TEST(Elsewhere, TheLastFailureIsTold) {
    Crowd crowd(Crowd::policy_of(2));
    const auto a = crowd.ask();
    crowd.refuse_connection(a);
    crowd.connect(a);
    crowd.receive(a, wire::whole_response(503, "application/json", R"({"error":{"message":"Loading model"}})"));
    EXPECT_EQ(crowd[a].attempts, 2);
    EXPECT_EQ(crowd[a].seen.record().status, 503);
    EXPECT_THAT(crowd[a].seen.body(), HasSubstr("Loading model"));
}

TEST(Elsewhere, AfterTheFirstByteNothingIsTriedAgain) {
    for (const bool only_head : {true, false}) {
        Crowd crowd(Crowd::policy_of(2));
        const auto a = crowd.ask();
        crowd.connect(a);
        crowd.receive(a, Crowd::stream_head() + (only_head ? "" : Crowd::piece()));
        crowd.act([&](Actions& out) { crowd.gateway.upstream({crowd.now, net::PeerClosed{crowd[a].connection, net::CloseKind::kRst, "reset"}}, out); });
        EXPECT_EQ(crowd[a].attempts, 1);
        EXPECT_TRUE(crowd.over(a));
        EXPECT_THAT(crowd[a].seen.body(), HasSubstr("connection_broken"));
    }
}

TEST(Elsewhere, AConnectionThatBreaksBeforeTheHeadIsNotTriedAgain) {
    Crowd crowd(Crowd::policy_of(2));
    const auto a = crowd.ask();
    crowd.connect(a);
    crowd.act([&](Actions& out) { crowd.gateway.upstream({crowd.now, net::PeerClosed{crowd[a].connection, net::CloseKind::kFin, ""}}, out); });
    EXPECT_EQ(crowd[a].attempts, 1) << "the server may have begun";
    EXPECT_EQ(crowd[a].seen.record().status, 502);
}

TEST(Elsewhere, RetriesCanBeForbidden) {
    Policy policy = Crowd::policy_of(2);
    policy.retry = false;
    Crowd crowd(policy);
    const auto a = crowd.ask();
    crowd.refuse_connection(a);
    EXPECT_EQ(crowd[a].attempts, 1);
    EXPECT_EQ(crowd[a].seen.record().status, 502);
}

TEST(Elsewhere, AServerThatIsDownCostsEachRequestNothingAfterAFew) {
    Crowd crowd(Crowd::policy_of(2));
    int failures = 0;
    for (int i = 0; i < 20; ++i) {
        const auto id = crowd.ask();
        while (crowd[id].upstream == 1 && !crowd.over(id)) crowd.refuse_connection(id), ++failures;
        crowd.answer(id);
        EXPECT_EQ(crowd[id].seen.record().text, "hi");
    }
    EXPECT_EQ(failures, kFailuresToOpen);
    EXPECT_THAT(crowd.page("/metrics"), HasSubstr("fullstop_gateway_upstream_usable{upstream=\"127.0.0.1:9001\"} 0"));
}

TEST(Elsewhere, AnotherConfigurationDrainsOneUpstreamAndDropsNothing) {
    Crowd crowd(Crowd::policy_of(2, 1));
    const auto a = crowd.ask(), b = crowd.ask(), c = crowd.ask();
    crowd.connect(a);
    crowd.receive(a, Crowd::stream_head() + Crowd::piece());
    const int kept = crowd[b].upstream;
    Policy policy = Crowd::policy_of(2, 1);
    std::erase_if(policy.upstreams, [&](const auto& each) { return each.url.port != 9000 + kept; });
    crowd.act([&](Actions& out) { crowd.gateway.configure(policy, crowd.now, out); });
    crowd.receive(a, Crowd::ending());
    EXPECT_EQ(crowd[a].seen.record().end.reason, "stop");
    EXPECT_FALSE(crowd.passed_on(c)) << "its place is gone with the upstream";
    crowd.answer(b);
    EXPECT_EQ(crowd[c].upstream, kept);
    policy.upstreams.front().draining = true;
    const auto d = crowd.ask();
    crowd.act([&](Actions& out) { crowd.gateway.configure(policy, crowd.now, out); });
    EXPECT_EQ(crowd[d].seen.record().status, 503) << "nobody will ever take it";
    crowd.answer(c);
    EXPECT_TRUE(crowd[c].seen.kept);
}

// Limits and budgets ------------------------------------------------------------------------------------------------------

TEST(Limits, ALoweredLimitIsAnnouncedAndItsCutIsNotTheClients) {
    Policy policy = Crowd::policy_of(1);
    policy.output.max_tokens = 100;
    Crowd crowd(policy);
    const auto a = crowd.ask(R"({"stream":true,"max_tokens":5000})");
    crowd.answer(a, "length");
    EXPECT_THAT(crowd[a].sent, HasSubstr(R"({"stream":true,"max_tokens":100})"));
    EXPECT_THAT(crowd[a].seen.head(), AllOf(HasSubstr("Fullstop-Requested-Max-Tokens: 5000\r\n"), HasSubstr("Fullstop-Effective-Max-Tokens: 100\r\n"),
                                            HasSubstr("Fullstop-Policy: max_tokens changed to 100 by output.max_tokens\r\n")));
    const auto b = crowd.ask(R"({"stream":true})");
    crowd.answer(b, "stop");
    EXPECT_THAT(crowd[b].seen.head(), HasSubstr("Fullstop-Requested-Max-Tokens: none\r\n"));
    const auto c = crowd.ask(R"({"stream":true,"max_tokens":20})");
    crowd.answer(c, "length");
    EXPECT_THAT(crowd[c].seen.head(), Not(HasSubstr("Fullstop-Policy")));
    EXPECT_THAT(crowd.page("/metrics"),
                AllOf(HasSubstr("cause=\"default_token_limit\",layer=\"settings\",upstream=\"127.0.0.1:9001\"} 1"), HasSubstr("cause=\"natural_end\""),
                      HasSubstr("cause=\"token_limit\""), HasSubstr("fullstop_gateway_limited_total 2")));
}

TEST(Limits, ALimitThatMovesWithLoadIsTheGatewaysBudget) {
    Policy policy = Crowd::policy_of(1);
    policy.output.by_load = {{.users = 2, .max_tokens = 80}};
    Crowd crowd(policy);
    const auto a = crowd.ask(R"({"stream":true,"max_tokens":500})"), b = crowd.ask(R"({"stream":true,"max_tokens":500})");
    crowd.answer(a, "length");
    crowd.answer(b, "length");
    EXPECT_THAT(crowd[a].seen.head(), HasSubstr("Fullstop-Effective-Max-Tokens: 500\r\n"));
    EXPECT_THAT(crowd[b].seen.head(), AllOf(HasSubstr("Fullstop-Effective-Max-Tokens: 80\r\n"), HasSubstr("by output.by_load, 2 users")));
    EXPECT_THAT(crowd.page("/metrics"), AllOf(HasSubstr("cause=\"token_limit\""), HasSubstr("cause=\"gateway_token_budget\"")));
}

TEST(Limits, ABudgetIsReservedSettledAndRefusesWithItsNumbers) {
    Policy policy = Crowd::policy_of(1);
    policy.budgets.per_key = TokenWindow{.tokens = 1000, .window = seconds(60)};
    Crowd crowd(policy);
    const std::string body = R"({"stream":true,"max_tokens":600})";
    const auto a = crowd.ask(body, "Bearer one");
    EXPECT_TRUE(crowd.passed_on(crowd.ask(body, "Bearer two"))) << "another key's";
    const auto refused = crowd.ask(body, "Bearer one");
    EXPECT_EQ(crowd[refused].seen.record().status, 429);
    EXPECT_THAT(crowd[refused].seen.raw, AllOf(HasSubstr("Retry-After: "), HasSubstr("the budget of this key is 1000 tokens in 60 s; 368 are left"),
                                               HasSubstr("gateway_rejected"), Not(HasSubstr("Bearer"))));
    crowd.answer(a, "stop", R"(,"usage":{"prompt_tokens":10,"completion_tokens":1})");
    EXPECT_TRUE(crowd.passed_on(crowd.ask(body, "Bearer one"))) << "what was not used came back";
}

TEST(Records, EachAnswerIsTakenDownOnceAsItWasSeenFromHere) {
    Policy policy = Crowd::policy_of(1, 1);
    policy.deadlines.total = seconds(60);
    Crowd crowd(policy);
    const auto a = crowd.ask(R"({"stream":true,"max_tokens":50,"model":"small"})"), b = crowd.ask(), c = crowd.ask();
    crowd.pass(seconds(2));
    crowd.answer(a, "length", R"(,"usage":{"prompt_tokens":10,"completion_tokens":50})");
    crowd.leave(c);
    crowd.pass(seconds(58));
    crowd.ask("{}", "", "/tokenize");
    ASSERT_EQ(crowd.records.size(), 3U) << "b met its total limit";
    const answer::Record& whole = crowd.records[0];
    EXPECT_THAT(crowd[a].seen.head(), HasSubstr("X-Request-Id: " + whole.request.id + "\r\n"));
    EXPECT_EQ(whole.fullstop_cause, "token_limit");
    EXPECT_EQ(whole.request.model, "small");
    EXPECT_EQ(whole.request.arm, "gateway");
    EXPECT_EQ((*whole.output_tokens).count, 50);
    EXPECT_EQ(whole.end.reason, "length");
    EXPECT_EQ(whole.timeline.started, base::Duration{});
    EXPECT_EQ(whole.timeline.sent, base::Duration{});
    EXPECT_EQ(whole.timeline.first_token, seconds(2));
    EXPECT_EQ(whole.timeline.ended, seconds(2));
    EXPECT_EQ(whole.headers.at("fullstop-upstream"), "127.0.0.1:9001");
    EXPECT_TRUE(whole.text.empty()) << "what was said is nobody's business here";
    EXPECT_EQ(crowd.records[1].fullstop_cause, "client_cancelled");
    EXPECT_FALSE(crowd.records[1].timeline.sent);
    const answer::Record& cut = crowd.records[2];
    EXPECT_EQ(cut.fullstop_cause, "gateway_deadline");
    EXPECT_EQ(cut.deadline_fired, answer::DeadlineFired::kGateway);
    EXPECT_EQ(*cut.queue_ms, 2000);
    EXPECT_EQ(cut.timeline.sent, seconds(2));
    EXPECT_EQ(cut.timeline.ended, seconds(60));
    EXPECT_TRUE(crowd.over(b));
}

TEST(Limits, TheTraceOfACallerGoesOnUnchanged) {
    Crowd crowd(Crowd::policy_of(1));
    const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    net::ServiceRequest request{
        .id = 500, .method = "POST", .target = "/v1/chat/completions", .headers = {{"traceparent", trace}, {"tracestate", "a=b"}}, .body = "{}"};
    crowd.act([&](Actions& out) { crowd.gateway.request(crowd.now, request, out); });
    crowd.connect(500);
    EXPECT_THAT(crowd[500].sent, AllOf(HasSubstr("traceparent: " + trace + "\r\n"), HasSubstr("tracestate: a=b\r\n")));
}

}  // namespace
}  // namespace fullstop::gateway
