// Responses for clients of HTTP/1.0, for HEAD, and of kinds that have no body.
#include "adapters/asio/server/response_fitting.h"

#include <gtest/gtest.h>

namespace fullstop::adapters::asio {
namespace {

constexpr ResponseFitting::Client kOld{.knows_chunks = false, .wants_body = true};
constexpr ResponseFitting::Client kHead{.knows_chunks = true, .wants_body = false};
constexpr ResponseFitting::Client kModern{.knows_chunks = true, .wants_body = true};

struct Fitted {
    std::string bytes;
    bool whole, ends_by_close;
};

/// The same whatever pieces it comes in.
Fitted fit(ResponseFitting::Client client, const std::string& response) {
    const auto at_once = ResponseFitting::of(client, response);
    const Fitted out{at_once->pass(response), at_once->whole(), at_once->ends_by_close()};
    for (std::size_t cut = 12; cut < response.size(); ++cut) {
        const auto pieces = ResponseFitting::of(client, response);
        std::string bytes = pieces->pass(response.substr(0, cut));
        bytes += pieces->pass(response.substr(cut));
        EXPECT_EQ(bytes, out.bytes) << "cut at " << cut;
        EXPECT_EQ(pieces->whole(), out.whole);
    }
    return out;
}

TEST(ResponseFitting, ForHttp10ChunksBecomeABodyThatEndsWithTheConnection) {
    const std::string head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
        "chunked\r\nConnection: keep-alive\r\nX: y\r\n\r\n";
    const std::string fitted =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX: y\r\nConnection: "
        "close\r\n\r\nhello\r\n world";
    const Fitted whole = fit(kOld, head + "7\r\nhello\r\n\r\n6\r\n world\r\n0\r\n\r\n");
    EXPECT_EQ(whole.bytes, fitted);
    EXPECT_TRUE(whole.whole && whole.ends_by_close);
    const Fitted cut = fit(kOld, head + "7\r\nhello\r\n\r\n6\r\n world\r\n");
    EXPECT_EQ(cut.bytes, fitted);
    EXPECT_FALSE(cut.whole) << "no last chunk came";
}

TEST(ResponseFitting, ForHttp10ASizedBodyStaysAndInterimHeadsGo) {
    const std::string sized =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok";
    const Fitted fitted = fit(kOld, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + sized);
    EXPECT_EQ(fitted.bytes, sized);
    EXPECT_TRUE(fitted.whole && !fitted.ends_by_close);
}

TEST(ResponseFitting, HeadGetsTheHeadAlone) {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    EXPECT_EQ(fit(kHead, head + "ok").bytes, head);
    const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    EXPECT_EQ(fit(kHead, chunked + "2\r\nok\r\n0\r\n\r\n").bytes, chunked);
    EXPECT_TRUE(fit(kHead, chunked).whole);
}

TEST(ResponseFitting, NoContentHasNeitherLengthNorBody) {
    EXPECT_EQ(fit(kModern, "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\nX: y\r\n\r\nno").bytes,
              "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n");
    EXPECT_EQ(
        fit(kModern,
            "HTTP/1.1 204 No Content\r\ntransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n")
            .bytes,
        "HTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_EQ(fit(kModern, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nno").bytes,
              "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n");
}

TEST(ResponseFitting, WhatFitsIsLeftAlone) {
    EXPECT_EQ(ResponseFitting::of(kModern, "HTTP/1.1 200 OK\r\n"), nullptr);
    EXPECT_EQ(fit(kOld, "no HTTP at all, but what a broken server says").bytes,
              "no HTTP at all, but what a broken server says");
}

}  // namespace
}  // namespace fullstop::adapters::asio
