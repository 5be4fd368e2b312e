// What the gateway does around an answer: heads, identities, failures before the first byte,
// clients that leave, draining.
#include "gateway/gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "gateway/ending/error_body.h"
#include "gateway/request/request_head.h"
#include "gateway/test_crowd.h"
#include "gateway/test_upstream.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kChat = "/v1/chat/completions";
const std::string kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kPiece = wire::chunk(
    wire::sse_event(R"({"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]})"));

std::string metrics_of(Bench& bench) {
    bench.seen = {};
    bench.request(bench.get("/metrics"));
    return bench.seen.body();
}

TEST(Gateway, ARequestGoesOnWithTheFieldsOfItsConnectionReplaced) {
    Bench bench;
    auto request = bench.post("/v1/chat/completions?x=1", R"({"max_tokens":7})");
    request.headers = {{"host", "gateway:8081"},
                       {"connection", "keep-alive, X-Mine"},
                       {"x-mine", "1"},
                       {"te", "trailers"},
                       {"authorization", "Bearer k"},
                       {"accept-encoding", "gzip"},
                       {"x-request-id", "abc-1"},
                       {"content-length", "16"},
                       {"proxy-connection", "close"}};
    bench.request(request);
    EXPECT_EQ(bench.sent, "") << "before there is a connection";
    bench.connected();
    EXPECT_EQ(
        bench.sent,
        "POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: 127.0.0.1:9000\r\nauthorization: Bearer "
        "k\r\naccept-encoding: identity\r\n"
        "via: 1.1 fullstop\r\nx-request-id: abc-1\r\ncontent-length: 16\r\n\r\n{\"max_tokens\":7}");
}

TEST(Gateway, AnAbsoluteTargetAndABasePathBecomeThePathOfTheUpstream) {
    auto options = Bench::default_options();
    options.policy.upstreams.front().url = *wire::parse_server_url("http://[::1]:9000/mounted/v1");
    Bench bench(options);
    bench.request(bench.get("http://gateway/v1/models"));
    bench.connected();
    EXPECT_THAT(bench.sent, StartsWith("GET /mounted/v1/models HTTP/1.1\r\nHost: [::1]:9000\r\n"));
    EXPECT_THAT(bench.sent, Not(HasSubstr("content-length")));
}

TEST(Gateway, TheUpstreamsHeadKeepsItsLinesAndGetsTheGateways) {
    Bench bench;
    auto request = bench.post("/tokenize", R"({"max_tokens":64})");
    request.headers["x-request-id"] = "abc-1";
    bench.request(request);
    bench.connected();
    bench.receive(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Fine\r\nServer: x\r\nSet-Cookie: "
        "a=1\r\nSet-Cookie: b=2\r\nX-Request-Id: theirs\r\nConnection: X-Hop\r\n"
        "X-Hop: 1\r\nKeep-Alive: timeout=5\r\nContent-Type: application/json\r\nContent-Length: "
        "2\r\n\r\n{}");
    EXPECT_EQ(bench.seen.raw,
              "HTTP/1.1 200 Fine\r\nServer: x\r\nSet-Cookie: a=1\r\nSet-Cookie: "
              "b=2\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
              "X-Request-Id: abc-1\r\nFullstop-Upstream: 127.0.0.1:9000\r\n\r\n{}");
    EXPECT_TRUE(bench.seen.kept);
    EXPECT_TRUE(bench.upstream_closed);
}

TEST(Gateway, AnUpstreamThatAnnouncesItsOwnLimitIsBelieved) {
    Bench bench;
    bench.request(bench.post(kChat, R"({"max_completion_tokens":64})"));
    bench.connected();
    bench.receive(
        "HTTP/1.1 200 OK\r\nFullstop-Effective-Max-Tokens: 8\r\nContent-Length: 0\r\n\r\n");
    EXPECT_THAT(bench.seen.raw, AllOf(HasSubstr("Fullstop-Effective-Max-Tokens: 8\r\n"),
                                      Not(HasSubstr("Fullstop-Effective-Max-Tokens: 64"))));
}

TEST(Gateway, ABodyThatOnlyItsCloseEndsStaysAsAmbiguousAsItWas) {
    Bench bench;
    bench.request(bench.get("/index.html"));
    bench.connected();
    bench.receive("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<html>");
    bench.close(net::CloseKind::kFin);
    EXPECT_THAT(bench.seen.raw, HasSubstr("\r\nConnection: close\r\n\r\n<html>"));
    EXPECT_THAT(bench.seen.raw, Not(HasSubstr("chunked")));
    EXPECT_FALSE(bench.seen.kept);
    EXPECT_FALSE(bench.seen.reset);
}

TEST(Gateway, ABodyThatOnlyItsCloseEndsIsResetWhenItBroke) {
    for (const bool silent : {false, true}) {
        Bench bench;
        bench.request(bench.get("/index.html"));
        bench.connected();
        bench.receive("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<html>");
        if (silent)
            bench.silence();
        else
            bench.close(net::CloseKind::kRst);
        EXPECT_TRUE(bench.seen.reset);
        EXPECT_EQ(bench.seen.record().end.transport, answer::Transport::kReset);
    }
}

TEST(Gateway, AHeadRequestHasNoBody) {
    Bench bench;
    auto request = bench.get("/v1/models");
    request.method = "HEAD";
    bench.request(request);
    bench.connected();
    bench.receive("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
    EXPECT_TRUE(bench.seen.closed);
    EXPECT_TRUE(bench.seen.kept);
    EXPECT_THAT(bench.seen.raw, HasSubstr("Content-Length: 99\r\n"));
}

TEST(Gateway, EachPieceGoesOnAsItComes) {
    Bench bench;
    bench.request(bench.post(kChat));
    bench.connected();
    bench.receive(kStreamHead);
    EXPECT_THAT(bench.seen.raw, HasSubstr("\r\n\r\n"));
    const std::size_t before = bench.seen.raw.size();
    bench.receive(kPiece);
    EXPECT_EQ(bench.seen.raw.substr(before), kPiece);
    bench.receive(kPiece.substr(0, 20));  // half an event is not held back
    EXPECT_GT(bench.seen.raw.size(), before + kPiece.size());
}

// Before the first byte
// -------------------------------------------------------------------------------------------------

struct Early {
    const char* name;
    std::function<void(Bench&)> happens;
    int status;
    const char *cause, *by;
};

TEST(Gateway, AFailureBeforeTheFirstByteIsAnHttpErrorThatNamesItsCause) {
    const std::vector<Early> all = {
        {"refused",
         [](Bench& b) { b.fail_to_connect(net::ConnectFailure::kRefused, "Connection refused"); },
         502, "engine_death", "upstream"},
        {"no route",
         [](Bench& b) { b.fail_to_connect(net::ConnectFailure::kUnreachable, "No route"); }, 502,
         "connection_broken", "upstream"},
        {"no answer",
         [](Bench& b) { b.fail_to_connect(net::ConnectFailure::kTimedOut, "no answer"); }, 504,
         "connection_broken", "upstream"},
        {"FIN", [](Bench& b) { b.connected(), b.close(net::CloseKind::kFin); }, 502,
         "connection_broken", "upstream"},
        {"RST", [](Bench& b) { b.connected(), b.close(net::CloseKind::kRst); }, 502,
         "connection_broken", "upstream"},
        {"FIN in the head",
         [](Bench& b) {
             b.connected(), b.receive("HTTP/1.1 200 OK\r\nConte"), b.close(net::CloseKind::kFin);
         },
         502, "connection_broken", "upstream"},
        {"silence", [](Bench& b) { b.connected(), b.silence(); }, 504, "gateway_idle_timeout",
         "gateway"},
        {"silence while connecting", [](Bench& b) { b.silence(); }, 504, "gateway_idle_timeout",
         "gateway"},
        {"garbage", [](Bench& b) { b.connected(), b.receive("SSH-2.0-OpenSSH\r\n"); }, 502,
         "connection_broken", "upstream"},
        {"two lengths",
         [](Bench& b) {
             b.connected(),
                 b.receive("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabc");
         },
         502, "connection_broken", "upstream"},
        {"a head without end",
         [](Bench& b) {
             b.connected(), b.receive("HTTP/1.1 200 OK\r\nX: " + std::string(70000, 'x'));
         },
         502, "gateway_rejected", "gateway"},
    };
    for (const Early& early : all) {
        SCOPED_TRACE(early.name);
        Bench bench;
        bench.request(bench.post(kChat));
        early.happens(bench);
        EXPECT_TRUE(bench.seen.closed);
        EXPECT_TRUE(bench.seen.kept) << "the gateway's own answer is whole";
        EXPECT_EQ(bench.seen.record().status, early.status);
        EXPECT_EQ(bench.seen.record().end.transport, answer::Transport::kClean);
        EXPECT_THAT(bench.seen.body(), HasSubstr(std::string("\"stop\":{\"cause\":\"") +
                                                 early.cause + "\",\"by\":\"" + early.by + "\""));
        EXPECT_THAT(bench.seen.head(), AllOf(HasSubstr("X-Request-Id: fs-"),
                                             HasSubstr("Fullstop-Upstream: 127.0.0.1:9000")));
        EXPECT_EQ(bench.gateway.running(), 0U);
        EXPECT_LE(bench.connects, 1);
        EXPECT_THAT(metrics_of(bench),
                    HasSubstr(std::string("fullstop_answers_total{cause=\"") + early.cause + "\""));
    }
}

TEST(Gateway, TheObjectOfAnIdleTimeoutCarriesLimitAndElapsedTime) {
    Bench bench;
    bench.request(bench.post(kChat, R"({"max_tokens":64})"));
    bench.connected();
    bench.receive(kStreamHead + kPiece);
    bench.silence();
    EXPECT_THAT(
        bench.seen.body(),
        AllOf(HasSubstr(
                  "no byte from the upstream for 30.0 s (limit 30.0 s), 30.0 s after the request"),
              HasSubstr("\"requested_max_tokens\":64"), HasSubstr("\"deadline_ms\":3E4"),
              HasSubstr("\"queue_ms\":0E0"),
              HasSubstr("\"limit\":\"idle\",\"limit_ms\":3E4,\"elapsed_ms\":3E4")));
    EXPECT_TRUE(bench.upstream_closed);
}

TEST(Gateway, BytesMoveTheLimitOnSilence) {
    Bench bench;
    bench.request(bench.post(kChat));
    bench.connected();
    bench.receive(kStreamHead);
    bench.now += std::chrono::seconds(29);
    bench.receive(kPiece);
    bench.now += std::chrono::seconds(29);
    bench.tell(net::TimerFired{bench.last_id});
    EXPECT_FALSE(bench.seen.closed);
    ASSERT_TRUE(bench.timer);
    EXPECT_EQ(*bench.timer - bench.now, std::chrono::seconds(1));
}

TEST(Gateway, TheUpstreamIsNotReadWhileItsClientLagsAndItsSilenceIsNotCounted) {
    Bench bench;
    bench.request(bench.post(kChat));
    bench.connected();
    bench.receive(kStreamHead + kPiece);
    bench.now += std::chrono::seconds(29);
    bench.lag(true);
    EXPECT_FALSE(bench.upstream_read);
    bench.now += std::chrono::seconds(29);
    bench.tell(net::TimerFired{bench.last_id});
    EXPECT_FALSE(bench.seen.closed);
    bench.lag(false);
    EXPECT_TRUE(bench.upstream_read);
    ASSERT_TRUE(bench.timer);
    bench.now = *bench.timer;
    bench.tell(net::TimerFired{bench.last_id});
    EXPECT_FALSE(bench.seen.closed) << "the silence began anew when the client had caught up";
}

TEST(Gateway, AClientThatTakesNothingForTheLimitIsGivenUp) {
    Bench bench;
    bench.request(bench.post(kChat));
    bench.connected();
    bench.receive(kStreamHead + kPiece);
    bench.lag(true);
    bench.silence();
    EXPECT_TRUE(bench.upstream_closed);
    EXPECT_THAT(bench.seen.body(),
                HasSubstr("no byte was taken by the client for 30.0 s (limit 30.0 s)"));
}

// Clients
// -------------------------------------------------------------------------------------------------

TEST(Gateway, AClientThatLeavesFreesTheUpstreamWhateverItWasDoing) {
    const std::vector<std::function<void(Bench&)>> stages = {
        [](Bench&) {},
        [](Bench& b) { b.connected(); },
        [](Bench& b) { b.connected(), b.receive(kStreamHead + kPiece); },
    };
    for (const auto& stage : stages) {
        Bench bench;
        bench.request(bench.post(kChat));
        stage(bench);
        bench.leave();
        EXPECT_TRUE(bench.upstream_closed);
        EXPECT_FALSE(bench.timer);
        EXPECT_EQ(bench.gateway.running(), 0U);
        bench.receive(kPiece);  // what was on its way is for nobody
        EXPECT_THAT(
            metrics_of(bench),
            HasSubstr(
                "cause=\"client_cancelled\",layer=\"client\",upstream=\"127.0.0.1:9000\"} 1"));
    }
}

TEST(Gateway, AnIdentityThatCannotStandInALogIsRefused) {
    Bench bench;
    auto request = bench.post(kChat);
    request.headers["x-request-id"] = std::string(200, 'x');
    bench.request(request);
    EXPECT_EQ(bench.seen.record().status, 400);
    EXPECT_EQ(bench.connects, 0);
}

TEST(Gateway, ItsOwnPagesAskNobody) {
    for (const auto* path : {"/health", "/metrics", "/fullstop/status"}) {
        Bench bench;
        bench.request(bench.get(path));
        EXPECT_EQ(bench.seen.record().status, 200) << path;
        EXPECT_EQ(bench.connects, 0);
        bench.seen = {};
        bench.request(bench.post(path));
        EXPECT_EQ(bench.seen.record().status, 405) << path;
    }
}

TEST(Gateway, OtherResponsesAreNotCountedAsAnswers) {
    Bench bench;
    bench.request(bench.get("/v1/models"));
    bench.connected();
    bench.receive(wire::whole_response(200, "application/json", R"({"data":[]})"));
    EXPECT_THAT(metrics_of(bench),
                AllOf(HasSubstr("fullstop_other_responses_total{upstream=\"127.0.0.1:9000\"} 1"),
                      Not(HasSubstr("fullstop_answers_total{"))));
}

/// A stream of three pieces: the first token 101 ms after the request, the third 2 ms later.
void stream_three(Bench& bench, const std::string& model, bool whole) {
    bench.request(bench.post(kChat, R"({"stream":true})"));
    bench.connected();
    bench.now += std::chrono::milliseconds(100);
    const std::string piece = wire::chunk(wire::sse_event(
        R"({"model":")" + model +
        R"(","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]})"));
    bench.receive(kStreamHead + piece);
    bench.receive(piece);
    bench.receive(piece);
    if (!whole) return bench.close(net::CloseKind::kFin);
    bench.receive(wire::chunk(wire::sse_event(
                      R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})")) +
                  wire::chunk(wire::sse_event(
                      R"({"choices":[],"usage":{"prompt_tokens":17,"completion_tokens":3}})")) +
                  wire::chunk(wire::sse_event("[DONE]")) + "0\r\n\r\n");
}

TEST(Gateway, AnswersAreCountedInTheNamesOfOpenTelemetry) {
    Bench bench;
    stream_three(bench, "m\\\"1", true);
    bench.seen = {};
    stream_three(bench, "m\\\"1", false);
    const std::string text = metrics_of(bench);
    const std::string labels =
        R"(gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_response_model="m\"1")";
    for (const std::string& line : {
             "gen_ai_server_request_duration_seconds_count{" + labels + "} 1\n",
             "gen_ai_server_request_duration_seconds_count{" + labels +
                 ",error_type=\"connection_broken\"} 1\n",
             "gen_ai_server_time_to_first_token_seconds_bucket{" + labels + ",le=\"0.1\"} 0\n",
             "gen_ai_server_time_to_first_token_seconds_bucket{" + labels + ",le=\"0.25\"} 1\n",
             "gen_ai_server_time_to_first_token_seconds_count{" + labels + "} 1\n",
             "gen_ai_server_time_per_output_token_seconds_sum{" + labels + "} 0.001\n",
             "gen_ai_client_token_usage_sum{" + labels + ",gen_ai_token_type=\"input\"} 17\n",
             "gen_ai_client_token_usage_sum{" + labels + ",gen_ai_token_type=\"output\"} 3\n",
         })
        EXPECT_THAT(text, HasSubstr(line));
}

TEST(Gateway, ModelNamesFromOutsideCannotFillTheMetrics) {
    Bench bench;
    for (int i = 0; i < 100; ++i) {
        bench.seen = {};
        stream_three(bench, "m" + std::to_string(i), true);
    }
    const std::string text = metrics_of(bench);
    EXPECT_THAT(
        text,
        HasSubstr(
            "gen_ai_server_request_duration_seconds_count{gen_ai_response_model=\"_OTHER\"} 36\n"));
    EXPECT_THAT(text, Not(HasSubstr("m64\"")));
}

TEST(Gateway, DrainingLetsAnswersFinishAndEndsTheRestWithAReason) {
    Bench bench;
    bench.request(bench.post(kChat));
    bench.connected();
    bench.receive(kStreamHead + kPiece);
    const Seen running = bench.seen;
    Actions out;
    bench.gateway.drain(bench.now, out);
    ASSERT_EQ(out.upstream.size(), 1U);
    EXPECT_EQ(std::get<net::SetTimer>(out.upstream.front()).at,
              bench.now + std::chrono::seconds(5));
    bench.seen = {};
    bench.request(bench.post(kChat));
    EXPECT_EQ(bench.seen.record().status, 503);
    EXPECT_THAT(bench.seen.raw,
                AllOf(HasSubstr("Retry-After: 5\r\n"), HasSubstr("gateway_rejected")));
    EXPECT_FALSE(bench.gateway.drained());
    bench.seen = running;
    bench.now += std::chrono::seconds(5);
    bench.tell(net::TimerFired{0});
    EXPECT_TRUE(bench.gateway.drained());
    EXPECT_THAT(
        bench.seen.body(),
        AllOf(HasSubstr("\"cause\":\"gateway_deadline\",\"by\":\"gateway\""),
              HasSubstr("drain limit of 5 s"), HasSubstr("\"limit\":\"drain\",\"limit_ms\":5E3")));
    EXPECT_FALSE(bench.seen.kept);
}

// Paths
// -------------------------------------------------------------------------------------------------

TEST(GatewayPaths, EverySpellingOfAnAnswerPathIsHeldToItsLimitsAndGoesOnInOneForm) {
    for (const auto* spelling :
         {"/v1/chat/completions", "/v1/chat/completion%73", "/v1/chat/completions/",
          "/v1/chat/completions;x", "/v1/chat/completions#", "//v1/x/../chat/completions",
          "http://gateway/v1/chat/completions"}) {
        auto options = Bench::default_options();
        options.policy.output.max_tokens = 64;
        options.policy.budgets.routes["/v1/chat/completions"] = {.tokens = 200};
        Bench bench(options);
        bench.request(bench.post(spelling, R"({"max_tokens":5000})"));
        bench.connected();
        EXPECT_THAT(bench.sent, AllOf(StartsWith("POST /v1/chat/completions HTTP/1.1\r\n"),
                                      HasSubstr(R"({"max_tokens":64})")))
            << spelling;
        bench.seen = {};
        bench.request(bench.post(spelling));
        EXPECT_EQ(bench.gateway.running(), 2U) << "two of 96 fit 200";
        bench.request(bench.post(spelling));
        EXPECT_THAT(bench.seen.raw, HasSubstr("HTTP/1.1 429 ")) << spelling;
    }
}

TEST(GatewayPaths, MessagesAndResponsesAreAnswers) {
    for (const auto& [path, sent] :
         {std::pair("/v1/messages", R"({"max_tokens":64,"stream":true})"),
          std::pair("/v1/responses", R"({"max_output_tokens":64,"stream":true})")}) {
        auto options = Bench::default_options();
        options.policy.output.max_tokens = 64;
        options.policy.upstreams.front().max_concurrency = 1;
        Bench bench(options);
        bench.request(bench.post(path, R"({"stream":true})"));
        bench.connected();
        EXPECT_THAT(bench.sent, HasSubstr(sent));
        bench.request(bench.post(path));
        EXPECT_EQ(bench.gateway.waiting(), 1U);
    }
}

TEST(GatewayPaths, OwnPagesAreOwnInEverySpelling) {
    for (const auto* spelling : {"/metrics", "//metrics", "/metrics/", "/%6Detrics",
                                 "http://x/metrics", "/v1/../metrics?x=1"}) {
        Bench bench;
        bench.request(bench.get(spelling));
        EXPECT_THAT(bench.seen.body(), HasSubstr("fullstop_gateway_")) << spelling;
        EXPECT_EQ(bench.connects, 0) << spelling;
    }
}

TEST(GatewayPaths, WhatCouldBeAnAnswerIsRefusedUnlessItIsToBeRelayed) {
    for (const auto* path :
         {"/v1/complete", "/invocations", "/", "/V1/Chat/Completions", "/v1/engines/x/chat"}) {
        Bench bench;
        bench.request(bench.post(path));
        EXPECT_THAT(bench.seen.raw, AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("[paths] other")))
            << path;
        EXPECT_EQ(bench.connects, 0);
        auto options = Bench::default_options();
        options.policy.other_paths = OtherPaths::kRelay;
        Bench relaying(options);
        relaying.request(relaying.post(path));
        EXPECT_EQ(relaying.connects, 1) << path;
    }
    Bench bench;
    auto put = bench.post(kChat);
    put.method = "PUT";
    bench.request(put);
    EXPECT_THAT(bench.seen.raw, StartsWith("HTTP/1.1 403 "));
}

TEST(GatewayPaths, WhatCannotBeAnAnswerIsRelayed) {
    for (const auto* path : {"/v1/embeddings", "/tokenize", "/api/show", "/api/blobs/sha256:x",
                             "/v1/messages/count_tokens"}) {
        Bench bench;
        bench.request(bench.post(path, "no json"));
        EXPECT_EQ(bench.connects, 1) << path;
    }
    for (const auto* method : {"GET", "HEAD", "OPTIONS", "DELETE"}) {
        Bench bench;
        auto request = bench.get("/any/thing");
        request.method = method;
        bench.request(request);
        EXPECT_EQ(bench.connects, 1) << method;
    }
}

TEST(GatewayPaths, WhatServersReadDifferentlyIsRefusedInOneLineOfCharacters) {
    for (const std::string target :
         {"/v1/chat/completion%2573", "/a%00", "/a\\b", "completions", "/a%zz\xFF"}) {
        Bench bench;
        bench.request(bench.post(target));
        EXPECT_THAT(bench.seen.raw, StartsWith("HTTP/1.1 400 ")) << target;
        EXPECT_FALSE(base::first_invalid_byte(bench.seen.raw)) << target;
        EXPECT_EQ(bench.connects, 0);
    }
}

// Bodies
// -------------------------------------------------------------------------------------------------

TEST(GatewayBodies, NumbersBeyondEverythingEndNothing) {
    Crowd crowd(Crowd::policy_of(1));
    std::vector<net::ConnectionId> all;
    for (const auto* number :
         {"9007199254740992", "9223372036854775807", "1e30", "-9223372036854775808"})
        for (int i = 0; i < 300; ++i)
            all.push_back(
                crowd.ask(R"({"stream":true,"n":128,"max_tokens":)" + std::string(number) + "}"));
    EXPECT_THAT(crowd.page("/fullstop/status"), HasSubstr("\"running\":1200"));
    const std::string usage =
        R"(,"usage":{"prompt_tokens":9007199254740992,"completion_tokens":-9007199254740992})";
    for (const auto id : all) crowd.answer(id, "stop", usage);
    EXPECT_THAT(crowd.page("/fullstop/status"), HasSubstr("\"kv_tokens_held\":0"));
}

TEST(GatewayBodies, WhatAServerSaysOfItselfIsClampedToo) {
    Crowd crowd(Crowd::policy_of(1));
    const std::int64_t huge = std::int64_t{1} << 53;
    crowd.act([&](Actions& out) {
        crowd.gateway.learned(
            1, {.server = "x", .slots = 2000, .pool = {}, .window = huge, .default_output = huge},
            crowd.now, out);
    });
    std::vector<net::ConnectionId> all;
    for (int i = 0; i < 1100; ++i) all.push_back(crowd.ask(R"({"n":128})"));
    crowd.act([&](Actions& out) {
        crowd.gateway.learned(1, {.server = "x", .slots = 0, .pool = -5, .window = -huge},
                              crowd.now, out);
    });
    for (const auto id : all) crowd.answer(id);
    EXPECT_THAT(crowd.page("/fullstop/status"), HasSubstr("\"kv_tokens_held\":0"));
}

TEST(GatewayBodies, WithLimitsABodyThatOthersMayReadOtherwiseIsRefused) {
    const auto status_of = [](const std::string& body, bool limits) {
        auto options = Bench::default_options();
        if (limits) options.policy.output.max_tokens = 64;
        Bench bench(options);
        bench.request(bench.post(kChat, body));
        return bench.connects == 1 ? "relayed" : bench.seen.raw.substr(9, 3);
    };
    for (const std::string body :
         {"", "\xEF\xBB\xBF{\"max_tokens\":5000}", "{\"x\":NaN}", "{\"max_tokens\":5000/**/}",
          "{}x", "[{}]", "{\"x\":\"\xFF\"}"}) {
        EXPECT_EQ(status_of(body, true), "400") << body;
        EXPECT_EQ(status_of(body, false), "relayed") << body;
    }
    EXPECT_EQ(status_of(R"({"max_tokens":1,"max_tokens":5000})", false), "400")
        << "servers differ in which of the two counts";
    EXPECT_EQ(status_of(R"({"x":"\ud800"})", true), "relayed")
        << "JSON, and its members are beyond doubt";
}

TEST(GatewayBodies, OurOwnErrorsAreBoundedAndCharacters) {
    const std::string words = "\xFFx" + std::string(9000, 'a') + "\xE2\x82\xAC";
    for (const std::string& error :
         {error_body(words, "type", "code"),
          error_body(End{.detail = words}, AnswerNumbers{}, ErrorShape::kMessages),
          error_body(std::string(serving::kMaxMessageBytes - 1, 'a') + "\xE2\x82\xAC", "t", "c")}) {
        EXPECT_FALSE(base::first_invalid_byte(error));
        EXPECT_LT(error.size(), 2 * serving::kMaxMessageBytes + 1000);
    }
}

}  // namespace
}  // namespace fullstop::gateway
