// The framing's facts are read as they are: sizes, last chunk, what is missing, and nothing is
// repaired.
#include "wire/http/http_framing.h"

#include <gtest/gtest.h>

#include <string>

namespace fullstop::wire {
namespace {

using answer::Framing;

std::string body_of(HttpFraming& framing, std::string_view bytes) {
    std::string body;
    while (!bytes.empty() && !framing.complete()) body += framing.next(bytes);
    return body;
}

TEST(HttpFraming, headers_have_lower_case_names_and_repeated_ones_are_joined) {
    HttpFraming framing;
    body_of(framing,
            "HTTP/1.1 200 OK\r\nVia: a\r\nX-Y:  z \r\nvia: b\r\n folded\r\nContent-Length: "
            "2\r\n\r\nab");
    EXPECT_EQ(framing.head().headers.at("via"), "a, b folded");
    EXPECT_EQ(framing.head().headers.at("x-y"), "z");
    EXPECT_EQ(framing.head().status, 200);
    EXPECT_EQ(framing.head().phrase, "OK");
    EXPECT_EQ(framing.head().version, "1.1");
}

TEST(HttpFraming, interim_responses_are_passed_over) {
    HttpFraming framing;
    EXPECT_EQ(body_of(framing,
                      "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 "
                      "Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"),
              "a");
    EXPECT_EQ(framing.head().status, 200);
    EXPECT_FALSE(framing.head().headers.contains("link"));
}

TEST(HttpFraming, no_content_and_not_modified_have_no_body) {
    for (const auto* status : {"204 No Content", "304 Not Modified"}) {
        HttpFraming framing;
        body_of(framing,
                std::string("HTTP/1.1 ") + status + "\r\nTransfer-Encoding: chunked\r\n\r\n");
        EXPECT_TRUE(framing.complete()) << status;
    }
}

TEST(HttpFraming, a_content_length_counts_what_is_missing) {
    HttpFraming framing;
    EXPECT_EQ(body_of(framing, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), "abc");
    EXPECT_EQ(framing.framing(), Framing::kContentLength);
    EXPECT_EQ(framing.missing_bytes(), 7U);
    EXPECT_FALSE(framing.complete());
    EXPECT_EQ(body_of(framing, "defghijEXTRA"), "defghij");
    EXPECT_TRUE(framing.complete());
}

TEST(HttpFraming, chunks_with_extensions_upper_case_sizes_and_trailers_are_read) {
    HttpFraming framing;
    EXPECT_EQ(body_of(framing,
                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                      "Chunked\r\n\r\nA;q=\"1\"\r\n0123456789\r\n000\r\nX: y\r\n\r\n"),
              "0123456789");
    EXPECT_TRUE(framing.complete());
    EXPECT_TRUE(framing.last_chunk_seen());
    EXPECT_FALSE(framing.malformed());
}

TEST(HttpFraming, a_body_that_stops_inside_a_chunk_says_how_much_is_missing) {
    HttpFraming framing;
    EXPECT_EQ(body_of(framing, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc"),
              "abc");
    EXPECT_EQ(framing.missing_bytes(), 13U);
    EXPECT_FALSE(framing.last_chunk_seen());
}

TEST(HttpFraming, a_last_chunk_without_the_empty_line_after_it_is_seen_but_not_complete) {
    HttpFraming framing;
    body_of(framing, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
    EXPECT_TRUE(framing.last_chunk_seen());
    EXPECT_FALSE(framing.complete());
}

TEST(HttpFraming, broken_chunk_framing_is_reported_and_loses_no_byte) {
    HttpFraming framing;
    EXPECT_EQ(
        body_of(framing,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ndata: x\n\ndata: y\n\n"),
        "data: x\n\ndata: y\n\n");
    EXPECT_TRUE(framing.malformed());
    EXPECT_FALSE(framing.complete());
}

TEST(HttpFraming, without_length_or_chunks_the_close_is_the_end) {
    HttpFraming framing;
    EXPECT_EQ(body_of(framing, "HTTP/1.0 200 OK\n\nabc"), "abc");
    EXPECT_EQ(framing.framing(), Framing::kUntilClose);
    EXPECT_FALSE(framing.complete());
}

TEST(HttpFraming, a_length_that_is_no_number_is_not_believed) {
    HttpFraming framing;
    EXPECT_EQ(body_of(framing, "HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\nabc"), "abc");
    EXPECT_EQ(framing.framing(), Framing::kUntilClose);
}

TEST(HttpFraming, equal_lengths_said_twice_are_one) {
    HttpFraming framing;
    EXPECT_EQ(
        body_of(framing, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab"),
        "ab");
    EXPECT_TRUE(framing.complete());
}

TEST(HttpFraming, a_first_line_that_is_no_status_line_makes_everything_body) {
    for (const std::string bytes :
         {"garbage", "HTTP/1.1 OK\r\n\r\nx", "HTTP/1.1 99 Low\r\n\r\nx"}) {
        HttpFraming framing;
        EXPECT_EQ(body_of(framing, bytes), bytes);
        EXPECT_TRUE(framing.malformed());
        EXPECT_EQ(framing.head().status, 0);
    }
}

TEST(HttpFraming, a_chunk_size_line_without_end_is_given_up_at_the_limit) {
    HttpFraming framing;
    const std::string endless(10000, 'a');
    EXPECT_EQ(body_of(framing, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + endless),
              endless);
    EXPECT_TRUE(framing.malformed());
}

TEST(StartsWithChunk, tells_framed_bodies_from_unframed_ones) {
    EXPECT_TRUE(starts_with_chunk("11f\r\ndata: x"));
    EXPECT_TRUE(starts_with_chunk("0\r\n\r\n"));
    EXPECT_FALSE(starts_with_chunk("data: x\n\n"));
    EXPECT_FALSE(starts_with_chunk("{\n"));
    EXPECT_FALSE(starts_with_chunk(""));
}

}  // namespace
}  // namespace fullstop::wire
