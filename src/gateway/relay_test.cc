// What a request and its answer look like behind the gateway: which fields are replaced, and that
// every piece is passed on at once and as it was.
#include "gateway/gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/test_upstream.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kChat = "/v1/chat/completions";

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

}  // namespace
}  // namespace fullstop::gateway
