// An answer whose server dies and whose rest another one writes: what its client reads, what is
// asked of the next server, and every way in which that is not possible, which must end as if
// nothing had been tried.
#include "gateway/exchange/continuation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "gateway/test_crowd.h"
#include "wire/json/json.h"

namespace fullstop::gateway {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const std::string kAsk =
    R"({"messages":[{"role":"user","content":"Tell me of foxes."}],"stream":true,"max_tokens":50})";
const std::vector<std::string> kDelivered = {"Foxes live in dens, ", "and in winter ",
                                             "they hunt by ear"};
constexpr std::string_view kText = "Foxes live in dens, and in winter they hunt by ear";

std::string event(const std::string& delta, const std::string& reason = "null") {
    return wire::sse_event(R"({"model":"m","choices":[{"index":0,"delta":)" + delta +
                           R"(,"finish_reason":)" + reason + "}]}");
}
std::string word(const std::string& text) { return event(R"({"content":")" + text + "\"}"); }
std::string opening() { return event(R"({"role":"assistant","content":null})"); }
std::string rest_of_it() { return event("{}", "\"stop\"") + wire::sse_event("[DONE]"); }

class Continued : public ::testing::Test {
protected:
    static Policy policy() {
        Policy policy = Crowd::policy_of(2);
        policy.continuation = true;
        return policy;
    }
    void know(const std::vector<std::string>& models = {"m"}, bool continues = true) {
        for (const auto& [id, upstream] : crowd.gateway.upstreams().all())
            crowd.act([&, which = id](Actions& out) {
                crowd.gateway.learned(which,
                                      {.server = "x", .models = models, .continues = continues},
                                      crowd.now, out);
            });
    }
    /// A stream that has delivered kText.
    net::ConnectionId begin(const std::string& ask = kAsk) {
        const auto id = crowd.ask(ask);
        first = crowd[id].upstream;
        crowd.connect(id);
        std::string body = wire::chunk(opening());
        for (const auto& text : kDelivered) body += wire::chunk(word(text));
        crowd.receive(id, Crowd::stream_head() + body);
        return id;
    }
    void answer_template(net::ConnectionId id, const std::string& prompt,
                         const std::string& more_head = "") {
        const std::string body = R"({"prompt":")" + prompt + "\"}";
        crowd.receive(id, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + more_head +
                              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    }
    /// What a client makes of the stream.
    std::string text_of(net::ConnectionId id) {
        std::string out;
        wire::JsonReader reader;
        const std::string body = crowd[id].seen.body();
        for (std::size_t at = 0; (at = body.find("data: {", at)) != std::string::npos; at += 6)
            out += reader.read(body.substr(at + 6, body.find("\n\n", at) - at - 6))["choices"]
                       .first()["delta"]["content"]
                       .string();
        return out;
    }
    void expect_cut(net::ConnectionId id, const std::string& why) {
        ASSERT_TRUE(crowd.over(id));
        EXPECT_EQ(text_of(id), kText);
        EXPECT_THAT(crowd[id].seen.body(), AllOf(HasSubstr("\"cause\":\"connection_broken\""),
                                                 HasSubstr(why), Not(HasSubstr("[DONE]"))));
        EXPECT_FALSE(crowd[id].seen.kept);
        EXPECT_THAT(crowd[id].seen.raw, Not(EndsWith("0\r\n\r\n")));
    }

    Crowd crowd{policy()};
    int first = 0;
};

TEST_F(Continued, TheRestComesFromAnotherServerBehindADeclaredSeam) {
    know();
    const auto id = begin();
    crowd.receive(
        id, wire::chunk("data: {\"choices\":[{\"index\":0,\"delta\":{\"conte"));  // half an event
    crowd.fail(id);
    ASSERT_FALSE(crowd.over(id));
    EXPECT_NE(crowd[id].upstream, first);
    crowd.connect(id);
    EXPECT_THAT(crowd[id].sent,
                AllOf(HasSubstr("POST /apply-template HTTP/1.1"),
                      HasSubstr(std::string("\"content\":\"") + std::string(kText))));
    crowd[id].sent.clear();
    answer_template(id, "<|user|>Tell me of foxes.<|assistant|>" + std::string(kText));
    EXPECT_THAT(crowd[id].sent,
                AllOf(HasSubstr("POST /v1/chat/completions HTTP/1.1"),
                      HasSubstr("\"max_tokens\":47"), HasSubstr("\"role\":\"assistant\"")));
    // llama-server repeats what it goes on from, in one piece with its first token.
    crowd.receive(id, Crowd::stream_head() + wire::chunk(opening()) +
                          wire::chunk(word(std::string(kText) + " under")) +
                          wire::chunk(word(" the snow.")) + wire::chunk(rest_of_it()) +
                          wire::last_chunk());
    ASSERT_TRUE(crowd.over(id));
    EXPECT_EQ(text_of(id), std::string(kText) + " under the snow.");
    const std::string body = crowd[id].seen.body();
    EXPECT_THAT(body, AllOf(HasSubstr("\"continued\":{\"from\":\"127.0.0.1:900"),
                            HasSubstr("\"because\":\"connection_broken\""),
                            HasSubstr("\"at_bytes\":50"), HasSubstr("\"at_tokens\":3"),
                            HasSubstr("[DONE]"), Not(HasSubstr("\"error\""))));
    EXPECT_EQ(body.find("\"role\""), body.rfind("\"role\"")) << "a turn begins once";
    EXPECT_TRUE(crowd[id].seen.kept);
    EXPECT_THAT(crowd.page("/metrics"), AllOf(HasSubstr("fullstop_gateway_continued_total 1\n"),
                                              HasSubstr("cause=\"natural_end\""),
                                              Not(HasSubstr("cause=\"connection_broken\""))));
    ASSERT_EQ(crowd.records.size(), 1U);
    EXPECT_EQ(crowd.records.front().stop_details.at("fullstop.continued"), "1");
    EXPECT_EQ(crowd.records.front().text_events, 5);
}

/// Each limit as the first server got it, and as the second one is to get it.
TEST_F(Continued, WhatIsNoNumberOfTokensStaysAsItWas) {
    know();
    const std::vector<std::pair<std::string, std::string>> limits = {
        {R"("max_tokens":-1)", R"("max_tokens":-1)"},
        {R"("max_tokens":100.5)", R"("max_tokens":97)"},
        {R"("max_tokens":1e30)", R"("max_tokens":1E30)"},
        {R"("max_completion_tokens":1e300)", R"("max_completion_tokens":1E300)"},
        {R"("max_tokens":200,"n_predict":2.5)", R"("max_tokens":197,"n_predict":1)"},
        {R"("max_tokens":0)", R"("max_tokens":0)"},
        {R"("max_tokens":9223372036854775807)", R"("max_tokens":9223372036854775807)"},
        {R"("max_tokens":"9")", R"("max_tokens":"9")"}};
    for (const auto& [asked, sent] : limits) {
        SCOPED_TRACE(asked);
        const auto id =
            begin(R"({"messages":[{"role":"user","content":"x"}],"stream":true,)" + asked + "}");
        crowd.fail(id);
        crowd.connect(id);
        answer_template(id, std::string(kText));
        EXPECT_THAT(crowd[id].sent, HasSubstr(sent));
        crowd.receive(id, Crowd::stream_head() +
                              wire::chunk(opening() + word(" under.") + rest_of_it()) +
                              wire::last_chunk());
        EXPECT_EQ(text_of(id), std::string(kText) + " under.");
        crowd.pass(std::chrono::minutes(5));
    }
}

TEST_F(Continued, FirstWordsThatCannotBeReadWithoutDoubtAreACut) {
    know();
    const std::string text = std::string(kText) + " under";
    const auto with = [&](const std::string& content, const std::string& more) {
        return wire::sse_event(R"({"model":"m","choices":[{"index":0,"delta":{"content":")" +
                               content + R"("},"finish_reason":null}])" + more + "}");
    };
    std::string deep;
    for (int i = 0; i < 60; ++i) deep = "[" + deep + "]";
    for (const std::string& event :
         {with(text, R"(,"t":NaN)"), with(text + "\\ud83d", ""), with(text + "\xFF", ""),
          with(text, R"(,"choices":5)"), with(text, R"(,"choices":[])"),
          with(text, R"(,"choices":[7])"), with(text, ",\"x\":" + deep)}) {
        SCOPED_TRACE(event);
        const auto id = begin();
        crowd.fail(id);
        crowd.connect(id);
        answer_template(id, std::string(kText));
        crowd.receive(id, Crowd::stream_head() + wire::chunk(event) + wire::chunk(rest_of_it()) +
                              wire::last_chunk());
        expect_cut(id, "cannot be read without doubt");
        crowd.pass(std::chrono::minutes(5));
    }
    EXPECT_THAT(crowd.page("/metrics"), HasSubstr("fullstop_gateway_faults_total 0\n"));
}

TEST_F(Continued, ARequestThatCannotBeWrittenAnewEndsAsItsServerLeftIt) {
    know();
    const auto id =
        begin(R"({"messages":[{"role":"user","content":"x"}],"stream":true,"stop":"\ud83d"})");
    crowd.fail(id);
    expect_cut(id, "\"fullstop\"");
    EXPECT_EQ(crowd[id].attempts, 1);
    EXPECT_THAT(crowd.page("/metrics"), HasSubstr("fullstop_gateway_faults_total 0\n"));
}

TEST_F(Continued, AnAnswerThatReachesTheLimitItsClientAskedForIsRecordedAsThat) {
    know();
    const auto end_with_usage = [](int tokens) {
        return event("{}", "\"length\"") +
               wire::sse_event(R"({"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":)" +
                               std::to_string(tokens) + "}}") +
               wire::sse_event("[DONE]");
    };
    for (const auto& [tokens, cause] :
         {std::pair(47, "token_limit"), std::pair(40, "default_token_limit")}) {
        const auto id = begin();
        crowd.fail(id);
        crowd.connect(id);
        answer_template(id, std::string(kText));
        crowd.receive(id, Crowd::stream_head() +
                              wire::chunk(opening() + word(" under") + end_with_usage(tokens)) +
                              wire::last_chunk());
        ASSERT_TRUE(crowd.over(id));
        EXPECT_EQ(crowd.records.back().fullstop_cause, cause);
        EXPECT_EQ(reported(crowd.records.back().output_tokens), tokens + 3);
        crowd.pass(std::chrono::minutes(5));
    }
}

TEST_F(Continued, AClientThatLeavesBetweenTwoPartsIsChargedWhatItGot) {
    Policy budgeted = policy();
    budgeted.budgets.overall = TokenWindow{
        .tokens = 140, .window = std::chrono::hours(1)};  // about 96 are set aside for one
    crowd.act([&](Actions& out) { crowd.gateway.configure(budgeted, crowd.now, out); });
    know();
    const auto id = begin();
    crowd.fail(id);
    crowd.connect(id);
    answer_template(id, std::string(kText));
    crowd.leave(id);
    EXPECT_THAT(crowd[crowd.ask(kAsk)].seen.raw, HasSubstr("HTTP/1.1 429 "))
        << "what it got is not given back";
    ASSERT_FALSE(crowd.records.empty());
    EXPECT_EQ(crowd.records.front().text_events, 3);
    EXPECT_FALSE(crowd.records.front().stop_details.contains("fullstop.continued"))
        << "there was no seam";
}

TEST_F(Continued, AServerThatDoesNotRepeatIsUnderstoodToo) {
    know();
    const auto id = begin();
    crowd.fail(id);
    crowd.connect(id);
    answer_template(id, std::string(kText));
    crowd.receive(id,
                  Crowd::stream_head() +
                      wire::chunk(opening() + word(" under") + word(" the snow.") + rest_of_it()) +
                      wire::last_chunk());
    EXPECT_EQ(text_of(id), std::string(kText) + " under the snow.");
    EXPECT_THAT(crowd[id].seen.body(), HasSubstr("[DONE]"));
}

TEST_F(Continued, WhatCannotBeVerifiedEndsAsItsServerLeftIt) {
    struct Case {
        std::string why;
        std::function<void(net::ConnectionId)> next;
    };
    const std::vector<Case> cases = {
        {"does not end with the delivered text",
         [&](auto id) { answer_template(id, std::string(kText) + "<|end|>"); }},
        {"does not end with the delivered text",
         [&](auto id) { crowd.receive(id, wire::whole_response(404, "application/json", "{}")); }},
        {"closes its connection after each answer",
         [&](auto id) { answer_template(id, std::string(kText), "Connection: close\r\n"); }},
        {"closed its connection", [&](auto id) { crowd.close(id); }},
        {"did not answer in HTTP", [&](auto id) { crowd.receive(id, "SSH-2.0-x\r\n\r\n"); }},
        {"HTTP 500",
         [&](auto id) {
             answer_template(id, std::string(kText));
             crowd.receive(id, wire::whole_response(500, "application/json",
                                                    R"({"error":{"message":"no"}})"));
         }},
        {"closed its connection",
         [&](auto id) {
             answer_template(id, std::string(kText));
             crowd.close(id);
         }},
    };
    know();
    for (const auto& each : cases) {
        const auto id = begin();
        crowd.fail(id);
        crowd.connect(id);
        each.next(id);
        expect_cut(id, each.why);
        crowd.pass(std::chrono::minutes(5));  // until both are trusted again
    }
}

TEST_F(Continued, ARepetitionThatDiffersIsNotPassedOnAsText) {
    know();
    const auto id = begin();
    crowd.fail(id);
    crowd.connect(id);
    answer_template(id, std::string(kText));
    crowd.receive(id, Crowd::stream_head() +
                          wire::chunk(opening() + word("Foxes live in dens, and in winter  they") +
                                      word(" sleep.")));
    ASSERT_TRUE(crowd.over(id));
    EXPECT_EQ(text_of(id), kText);
    EXPECT_THAT(
        crowd[id].seen.body(),
        AllOf(HasSubstr("repeats the delivered text with differences"), Not(HasSubstr("[DONE]"))));
}

TEST_F(Continued, OnlyPlainTextIsContinued) {
    know();
    const std::string head = R"({"messages":[{"role":"user","content":"x"}],"stream":true,)";
    for (const std::string more : {R"("tools":[{"type":"function"}]})", R"("n":2})",
                                   R"("response_format":{"type":"json_object"}})",
                                   R"("logprobs":true})", R"("grammar":"root"})"}) {
        const auto id = begin(head + more);
        crowd.fail(id);
        expect_cut(id, "\"fullstop\"");
        crowd.pass(std::chrono::minutes(5));
    }
    for (const std::string delta :
         {R"({"tool_calls":[{"index":0}]})", R"({"reasoning_content":"hm"})"}) {
        const auto id = begin();
        crowd.receive(id, wire::chunk(event(delta)));
        crowd.fail(id);
        expect_cut(id, "\"fullstop\"");
        crowd.pass(std::chrono::minutes(5));
    }
}

TEST_F(Continued, AnotherModelOrAnotherKindOfServerDoesNotGoOn) {
    know({"other"});
    auto id = begin(R"({"messages":[{"role":"user","content":"x"}],"stream":true})");
    crowd.fail(id);
    expect_cut(id, "no other one takes requests now");
    crowd.pass(std::chrono::minutes(5));
    know({"m"}, false);
    id = begin();
    crowd.fail(id);
    expect_cut(id, "no other one takes requests now");
}

TEST_F(Continued, AShortAnswerAndOneThatHadFinishedAreNotContinued) {
    know();
    auto id = crowd.ask(kAsk);
    crowd.connect(id);
    crowd.receive(id, Crowd::stream_head() + wire::chunk(word("Hi")));
    crowd.fail(id);
    EXPECT_TRUE(crowd.over(id)) << "two letters tell no repetition from a continuation";
    crowd.pass(std::chrono::minutes(5));
    id = begin();
    crowd.receive(id, wire::chunk(event("{}", "\"stop\"")));
    crowd.fail(id);
    EXPECT_TRUE(crowd.over(id));
    EXPECT_EQ(text_of(id), kText);
}

TEST_F(Continued, WhenNobodyMayGoOnAnyMoreItEndsAsItsServerLeftIt) {
    const std::vector<std::function<void()>> changes = {
        [&] { know({"other"}); },
        [&] { know({"m"}, false); },
        [&] {
            Policy other = policy();
            other.upstreams = {{.url = *wire::parse_server_url("http://127.0.0.1:9009")}};
            crowd.act([&](Actions& out) { crowd.gateway.configure(other, crowd.now, out); });
        },
    };
    Policy one_each = policy();
    for (auto& upstream : one_each.upstreams) upstream.max_concurrency = 1;
    crowd.act([&](Actions& out) { crowd.gateway.configure(one_each, crowd.now, out); });
    for (const auto& change : changes) {
        know();
        const auto id = begin();
        const auto busy = crowd.ask();
        ASSERT_TRUE(crowd.passed_on(busy));
        crowd.fail(id);
        ASSERT_FALSE(crowd.over(id)) << "it waits for the place of the other";
        change();
        expect_cut(id, "no upstream takes requests any more");
        crowd.leave(busy);
        crowd.pass(std::chrono::minutes(5));
    }
}

TEST_F(Continued, ADeadlineBetweenTwoServersEndsItAndALeavingClientStopsTheSearch) {
    Policy limited = policy();
    limited.deadlines.total = std::chrono::seconds(20);
    crowd.act([&](Actions& out) { crowd.gateway.configure(limited, crowd.now, out); });
    know();
    auto id = begin();
    crowd.fail(id);
    crowd.connect(id);
    crowd.pass(std::chrono::seconds(21));
    expect_cut(id, "the total limit of 20.0 s is over");
    crowd.pass(std::chrono::minutes(5));
    id = begin();
    crowd.fail(id);
    crowd.connect(id);
    const auto before = crowd.closed.size();
    crowd.leave(id);
    EXPECT_EQ(crowd.closed.size(), before + 1);
}

TEST_F(Continued, WithoutTheSettingNothingIsHeldBackOrTried) {
    Crowd plain(Crowd::policy_of(2));
    const auto id = plain.ask(kAsk);
    plain.connect(id);
    plain.receive(id, Crowd::stream_head() + wire::chunk("data: {\"cho"));
    EXPECT_THAT(plain[id].seen.body(), EndsWith("data: {\"cho"));
    plain.fail(id);
    EXPECT_TRUE(plain.over(id));
}

}  // namespace
}  // namespace fullstop::gateway
