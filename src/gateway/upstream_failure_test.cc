// Upstreams that fail before the first byte, fall silent, or are kept waiting by their client.
#include "gateway/gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/test_upstream.h"

namespace fullstop::gateway {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kChat = "/v1/chat/completions";

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
        EXPECT_THAT(bench.metrics(),
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

}  // namespace
}  // namespace fullstop::gateway
