// What a gateway's policy does to requests, in virtual time: they hear heartbeats, are tried
// elsewhere, limited, cut by a clock with its own name, or refused; and nothing of it makes a cut
// answer look whole. Waiting stands in waiting_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/test_crowd.h"

namespace fullstop::gateway {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kWholeJson =
    R"({"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]})";

// Heartbeats
// -------------------------------------------------------------------------------------------------

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
    EXPECT_THAT(crowd[b].seen.raw, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                                         HasSubstr("Fullstop-Heartbeat-Ms: 10000\r\n"),
                                         Not(HasSubstr("Fullstop-Queue-Ms"))));
    EXPECT_EQ(crowd[b].seen.record().comments, 2);
    crowd.connect(a);
    crowd.receive(a, Crowd::stream_head() + Crowd::piece());
    EXPECT_EQ(crowd[a].seen.record().comments, 3)
        << "two beats of a long prefill, and one line about the upstream";
    crowd.receive(a, Crowd::ending());
    crowd.answer(b);
    for (const auto id : {a, b}) {
        const answer::Record record = crowd[id].seen.record();
        EXPECT_EQ(record.end.reason, "stop");
        EXPECT_TRUE(record.end.terminator);
        EXPECT_EQ(record.text, "hi");
        EXPECT_TRUE(crowd[id].seen.kept);
    }
    EXPECT_THAT(crowd[b].seen.body(),
                HasSubstr(": fullstop upstream=127.0.0.1:9001 status=200 queue_ms=25000\n\n"));
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
    EXPECT_THAT(crowd[a].seen.body(), AllOf(HasSubstr("data: " + error + "\n\n"),
                                            HasSubstr("status=404"), Not(HasSubstr("[DONE]"))));
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
    EXPECT_THAT(crowd[b].seen.body(),
                HasSubstr("answered in one piece, although a stream was asked for"));
    EXPECT_FALSE(crowd[b].seen.raw.ends_with("\r\n0\r\n\r\n"));
    EXPECT_FALSE(crowd[b].seen.kept);
}

// Deadlines
// -------------------------------------------------------------------------------------------------

TEST(Deadlines, EachCutNamesItsLimitAndItsTimes) {
    Policy policy = Crowd::policy_of(1);
    policy.deadlines = {
        .queue_wait = {}, .first_token = seconds(20), .idle = seconds(8), .total = seconds(30)};
    {
        Crowd crowd(policy);
        const auto a = crowd.ask();
        crowd.connect(a);
        crowd.receive(a, Crowd::stream_head());
        for (int i = 0; i < 19; ++i)
            crowd.pass(seconds(1)), crowd.receive(a, wire::chunk(": still there\n\n"));
        EXPECT_FALSE(crowd.over(a));
        crowd.pass(seconds(2));
        EXPECT_THAT(
            crowd[a].seen.body(),
            AllOf(
                HasSubstr("\"cause\":\"gateway_deadline\""),
                HasSubstr("\"limit\":\"first_token\",\"limit_ms\":2E4,\"elapsed_ms\":2E4"),
                HasSubstr(
                    "no token from the upstream 20.0 s after it got the request (limit 20.0 s)")));
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
                    AllOf(HasSubstr("\"cause\":\"gateway_deadline\""),
                          HasSubstr("\"limit\":\"total\",\"limit_ms\":3E4,\"elapsed_ms\":3E4"),
                          HasSubstr("the total limit of 30.0 s is over"),
                          HasSubstr("\"deadline_ms\":3E4")));
        EXPECT_FALSE(crowd[a].seen.raw.ends_with("\r\n0\r\n\r\n"));
        EXPECT_EQ(crowd.closed.size(), 1U) << "the upstream works for nobody";
    }
    {
        Crowd crowd(policy);
        const auto a = crowd.ask();
        crowd.connect(a);
        crowd.receive(a, Crowd::stream_head() + Crowd::piece());
        crowd.pass(seconds(9));
        EXPECT_THAT(crowd[a].seen.body(), AllOf(HasSubstr("\"cause\":\"gateway_idle_timeout\""),
                                                HasSubstr("\"limit\":\"idle\"")));
    }
}

TEST(Deadlines, TheClientsOwnLimitCountsWhenItIsTheShorterOne) {
    Policy policy = Crowd::policy_of(1);
    policy.deadlines.total = seconds(30);
    Crowd crowd(policy);
    const auto a = crowd.ask(R"({"stream":true,"fullstop":{"deadline_ms":4000}})"),
               b = crowd.ask(R"({"stream":true,"fullstop":{"deadline_ms":90000}})");
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
    EXPECT_THAT(crowd[a].seen.head(), HasSubstr("x-should-retry: true\r\n"))
        << "the other upstream may be faster";
}

// Other upstreams
// -------------------------------------------------------------------------------------------------

TEST(Elsewhere, AFailedConnectionAndA503AreTriedAtAnotherUpstreamOnce) {
    Crowd crowd(Crowd::policy_of(3));
    const auto a = crowd.ask();
    const int first = crowd[a].upstream;
    crowd.refuse_connection(a);
    EXPECT_EQ(crowd[a].seen.raw, "");
    EXPECT_NE(crowd[a].upstream, first);
    crowd.connect(a);
    crowd.receive(a, wire::whole_response(503, "application/json",
                                          R"({"error":{"message":"Loading model"}})"));
    EXPECT_EQ(crowd[a].attempts, 3);
    EXPECT_EQ(crowd[a].seen.raw, "") << "nothing of the 503 went on";
    crowd.answer(a);
    EXPECT_THAT(crowd[a].seen.head(), AllOf(HasSubstr("Fullstop-Attempts: 3\r\n"),
                                            HasSubstr("Fullstop-Upstream: 127.0.0.1:900" +
                                                      std::to_string(crowd[a].upstream))));
    EXPECT_EQ(crowd[a].seen.record().text, "hi");
    EXPECT_THAT(crowd.page("/metrics"),
                HasSubstr("fullstop_gateway_retries_total{upstream=\"127.0.0.1:900" +
                          std::to_string(first) + "\"} 1"));
}

TEST(Elsewhere, TheLastFailureIsTold) {
    Crowd crowd(Crowd::policy_of(2));
    const auto a = crowd.ask();
    crowd.refuse_connection(a);
    crowd.connect(a);
    crowd.receive(a, wire::whole_response(503, "application/json",
                                          R"({"error":{"message":"Loading model"}})"));
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
        crowd.act([&](Actions& out) {
            crowd.gateway.upstream(
                {crowd.now, net::PeerClosed{crowd[a].connection, net::CloseKind::kRst, "reset"}},
                out);
        });
        EXPECT_EQ(crowd[a].attempts, 1);
        EXPECT_TRUE(crowd.over(a));
        EXPECT_THAT(crowd[a].seen.body(), HasSubstr("connection_broken"));
    }
}

TEST(Elsewhere, AConnectionThatBreaksBeforeTheHeadIsNotTriedAgain) {
    Crowd crowd(Crowd::policy_of(2));
    const auto a = crowd.ask();
    crowd.connect(a);
    crowd.act([&](Actions& out) {
        crowd.gateway.upstream(
            {crowd.now, net::PeerClosed{crowd[a].connection, net::CloseKind::kFin, ""}}, out);
    });
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
    EXPECT_THAT(crowd.page("/metrics"),
                HasSubstr("fullstop_gateway_upstream_usable{upstream=\"127.0.0.1:9001\"} 0"));
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

// Limits and budgets
// -------------------------------------------------------------------------------------------------

TEST(Limits, ALoweredLimitIsAnnouncedAndItsCutIsNotTheClients) {
    Policy policy = Crowd::policy_of(1);
    policy.output.max_tokens = 100;
    Crowd crowd(policy);
    const auto a = crowd.ask(R"({"stream":true,"max_tokens":5000})");
    crowd.answer(a, "length");
    EXPECT_THAT(crowd[a].sent, HasSubstr(R"({"stream":true,"max_tokens":100})"));
    EXPECT_THAT(
        crowd[a].seen.head(),
        AllOf(HasSubstr("Fullstop-Requested-Max-Tokens: 5000\r\n"),
              HasSubstr("Fullstop-Effective-Max-Tokens: 100\r\n"),
              HasSubstr("Fullstop-Policy: max_tokens changed to 100 by output.max_tokens\r\n")));
    const auto b = crowd.ask(R"({"stream":true})");
    crowd.answer(b, "stop");
    EXPECT_THAT(crowd[b].seen.head(), HasSubstr("Fullstop-Requested-Max-Tokens: none\r\n"));
    const auto c = crowd.ask(R"({"stream":true,"max_tokens":20})");
    crowd.answer(c, "length");
    EXPECT_THAT(crowd[c].seen.head(), Not(HasSubstr("Fullstop-Policy")));
    EXPECT_THAT(
        crowd.page("/metrics"),
        AllOf(
            HasSubstr(
                "cause=\"default_token_limit\",layer=\"settings\",upstream=\"127.0.0.1:9001\"} 1"),
            HasSubstr("cause=\"natural_end\""), HasSubstr("cause=\"token_limit\""),
            HasSubstr("fullstop_gateway_limited_total 2")));
}

TEST(Limits, ALimitThatMovesWithLoadIsTheGatewaysBudget) {
    Policy policy = Crowd::policy_of(1);
    policy.output.by_load = {{.users = 2, .max_tokens = 80}};
    Crowd crowd(policy);
    const auto a = crowd.ask(R"({"stream":true,"max_tokens":500})"),
               b = crowd.ask(R"({"stream":true,"max_tokens":500})");
    crowd.answer(a, "length");
    crowd.answer(b, "length");
    EXPECT_THAT(crowd[a].seen.head(), HasSubstr("Fullstop-Effective-Max-Tokens: 500\r\n"));
    EXPECT_THAT(crowd[b].seen.head(), AllOf(HasSubstr("Fullstop-Effective-Max-Tokens: 80\r\n"),
                                            HasSubstr("by output.by_load, 2 users")));
    EXPECT_THAT(crowd.page("/metrics"), AllOf(HasSubstr("cause=\"token_limit\""),
                                              HasSubstr("cause=\"gateway_token_budget\"")));
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
    EXPECT_THAT(crowd[refused].seen.raw,
                AllOf(HasSubstr("Retry-After: "),
                      HasSubstr("the budget of this key is 1000 tokens in 60 s; 368 are left"),
                      HasSubstr("gateway_rejected"), Not(HasSubstr("Bearer"))));
    crowd.answer(a, "stop", R"(,"usage":{"prompt_tokens":10,"completion_tokens":1})");
    EXPECT_TRUE(crowd.passed_on(crowd.ask(body, "Bearer one"))) << "what was not used came back";
}

TEST(Records, EachAnswerIsTakenDownOnceAsItWasSeenFromHere) {
    Policy policy = Crowd::policy_of(1, 1);
    policy.deadlines.total = seconds(60);
    Crowd crowd(policy);
    const auto a = crowd.ask(R"({"stream":true,"max_tokens":50,"model":"small"})"), b = crowd.ask(),
               c = crowd.ask();
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
    net::ServiceRequest request{.id = 500,
                                .method = "POST",
                                .target = "/v1/chat/completions",
                                .headers = {{"traceparent", trace}, {"tracestate", "a=b"}},
                                .body = "{}"};
    crowd.act([&](Actions& out) { crowd.gateway.request(crowd.now, request, out); });
    crowd.connect(500);
    EXPECT_THAT(crowd[500].sent, AllOf(HasSubstr("traceparent: " + trace + "\r\n"),
                                       HasSubstr("tracestate: a=b\r\n")));
}

}  // namespace
}  // namespace fullstop::gateway
