// What of an upstream's response head goes on, and responses whose end nothing but their own bytes
// can tell, on every path.
#include "gateway/exchange/response_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/test_upstream.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Seen relayed(const std::string& method, const std::string& path, std::string_view bytes,
             net::CloseKind end = net::CloseKind::kFin) {
    Bench bench;
    bench.request(method == "POST" ? bench.post(path) : bench.get(path));
    bench.connected();
    bench.receive(bytes);
    bench.close(end);
    EXPECT_TRUE(bench.seen.closed);
    return bench.seen;
}

std::string head(const std::string& fields, const std::string& status = "200 OK") {
    return "HTTP/1.1 " + status + "\r\n" + fields + "\r\n";
}

TEST(ResponseHead, WithANulOrABareCarriageReturnIsRefused) {
    using namespace std::string_literals;
    for (const std::string& field :
         {"X: a\0b\r\n"s, "X: a\rSet-Cookie: b\r\n"s, "X: a\r\r\n"s, "X\r: a\r\n"s}) {
        for (const auto* path : {"/v1/chat/completions", "/v1/embeddings"}) {
            const Seen seen = relayed(
                "POST", path,
                head("Content-Type: application/json\r\n" + field + "Content-Length: 2\r\n") +
                    "{}");
            EXPECT_THAT(seen.raw, AllOf(StartsWith("HTTP/1.1 502 "),
                                        HasSubstr("a NUL or a bare carriage return"),
                                        Not(HasSubstr("Set-Cookie"))));
        }
    }
    EXPECT_THAT(
        relayed("POST", "/v1/embeddings", "HTTP/1.1 200 O\rK\r\nContent-Length: 2\r\n\r\n{}").raw,
        StartsWith("HTTP/1.1 502 "));
}

TEST(ResponseHead, ALineThatIsNoFieldDoesNotGoOn) {
    for (const auto* line :
         {"0 e{d\"%type\":\"message_start\"}", "X Y: z", "X\xFF: z", "(x): z", ": z", "no colon"}) {
        const Seen seen = relayed("GET", "/x",
                                  head("Content-Type: text/plain\r\n" + std::string(line) +
                                       "\r\nX-A: b\r\nContent-Length: 2\r\n") +
                                      "ok");
        EXPECT_THAT(seen.raw, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("X-A: b"),
                                    EndsWith("ok"), Not(HasSubstr(line))))
            << line;
    }
}

TEST(ResponseHead, A204NamesNoLength) {
    const Seen seen = relayed("POST", "/v1/embeddings",
                              head("Content-Length: 5\r\nX-A: b\r\n", "204 No Content"));
    EXPECT_THAT(seen.raw,
                AllOf(StartsWith("HTTP/1.1 204 "), HasSubstr("X-A: b"), Not(HasSubstr("ength"))));
    EXPECT_THAT(relayed("GET", "/x", head("Content-Length: 5\r\n", "304 Not Modified")).raw,
                HasSubstr("Content-Length: 5"));
}

TEST(ResponseHead, AnAnswerInACodingThatNobodyAskedForIsRefused) {
    for (const auto* type : {"text/event-stream", "application/json", "application/x-ndjson"}) {
        const Seen seen =
            relayed("POST", "/v1/chat/completions",
                    head(std::string("Content-Type: ") + type + "\r\nContent-Encoding: gzip\r\n") +
                        "\x1F\x8B\x08");
        EXPECT_THAT(seen.raw,
                    AllOf(StartsWith("HTTP/1.1 502 "), HasSubstr("content-encoding gzip"),
                          HasSubstr("\"code\":\"server_error\""), Not(HasSubstr("\x1F"))));
    }
    const Seen named = relayed("POST", "/v1/chat/completions",
                               head("Content-Type: application/json\r\nContent-Encoding: "
                                    "Identity\r\nContent-Length: 2\r\n") +
                                   "{}");
    EXPECT_THAT(named.raw, StartsWith("HTTP/1.1 200 "));
}

TEST(ResponseHead, NothingIsAppendedToACodedBody) {
    const std::string coded = "\x1F\x8B\x08\xFF\xFE";
    for (const std::string& path : {std::string("/api/pull"), std::string("/v1/embeddings")}) {
        const Seen seen = relayed("POST", path,
                                  head("Content-Type: text/event-stream\r\nContent-Encoding: "
                                       "gzip\r\nTransfer-Encoding: chunked\r\n") +
                                      wire::chunk(coded));
        EXPECT_EQ(seen.body(), coded);
        EXPECT_FALSE(seen.kept);
    }
    const Seen refused = relayed(
        "POST", "/v1/chat/completions",
        head("Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n",
             "400 Bad Request") +
            coded);
    EXPECT_EQ(refused.body(), coded);
    EXPECT_TRUE(refused.kept);
}

struct Ending {
    std::string type, body;
    bool whole;
};

TEST(CloseDelimited, ABodyThatStopsInItsMiddleIsCutOnEveryPath) {
    const std::vector<Ending> endings = {{"text/event-stream", "data: one\n\n", true},
                                         {"text/event-stream", "data: one\r\n\r\n", true},
                                         {"text/event-stream", "data: one\n\ndata: tw", false},
                                         {"text/event-stream", "data: one\n", false},
                                         {"application/json", "{\"a\":[1,\"}\"]}", true},
                                         {"application/json", "{\"a\":[1,\"}\"]", false},
                                         {"application/json", "{\"a\":\"x\\\"", false},
                                         {"application/json", "[1,2]\n", true},
                                         {"application/json", "17", true},
                                         {"application/x-ndjson", "{\"a\":1}\n", true},
                                         {"application/x-ndjson", "{\"a\":1}\n{\"b\":2}", true},
                                         {"application/x-ndjson", "{\"a\":1}\n{\"b\"", false}};
    for (const Ending& each : endings) {
        for (const auto& [method, path] :
             {std::pair("POST", "/v1/embeddings"), std::pair("GET", "/v1/models"),
              std::pair("POST", "/api/pull")}) {
            SCOPED_TRACE(each.body + path);
            const Seen seen =
                relayed(method, path,
                        "HTTP/1.0 200 OK\r\nContent-Type: " + each.type + "\r\n\r\n" + each.body);
            EXPECT_EQ(seen.body(), each.body);
            EXPECT_EQ(seen.raw.ends_with("\r\n0\r\n\r\n"), each.whole);
            EXPECT_EQ(seen.kept, each.whole);
        }
    }
}

}  // namespace
}  // namespace fullstop::gateway
