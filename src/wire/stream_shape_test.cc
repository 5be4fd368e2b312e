// Each shape is seen in bytes that have it, and in no others.
#include "wire/stream_shape.h"

#include <gtest/gtest.h>

namespace fullstop::wire {
namespace {

using answer::StreamShape;

TEST(StreamShape, OfAnOrdinaryStreamIsEmptyButForItsStamps) {
    const StreamShape plain = shape_of(
        "data: {\"created\":1700,\"content\":\"a: b\"}\n\ndata: {\"created\": 1709}\n\ndata: "
        "[DONE]\n\n");
    StreamShape expected;
    expected.created_first = 1700;
    expected.created_last = 1709;
    EXPECT_EQ(plain, expected);
    EXPECT_EQ(shape_of(""), StreamShape());
}

TEST(StreamShape, NamesWhatClientsMisread) {
    EXPECT_TRUE(shape_of("data: {}\r\n\r\ndata: {}\r\n\r\n").crlf_events);
    EXPECT_TRUE(shape_of("data: {}\n\ndata:{}\n\n").tight_data);
    EXPECT_TRUE(shape_of("data: {}\nid: 4\n\n").id_or_retry);
    EXPECT_TRUE(shape_of("data: {}\nretry: 4\n\n").id_or_retry);
    EXPECT_TRUE(shape_of("data: {\"content\":\":-)\"}\n\n").leading_colon);
}

TEST(StreamShape, NamesACommentThatAHopSentOnAsData) {
    EXPECT_TRUE(shape_of("data: : keepalive\n\n").comment_as_data);
    EXPECT_TRUE(shape_of("data: :\n\n").comment_as_data);
    EXPECT_FALSE(shape_of(": keepalive\n\n").comment_as_data);
}

TEST(StreamShape, StampsThatAreNoNumbersAreNone) {
    const StreamShape odd = shape_of("data: {\"created\":\"2026\"}\n\n");
    EXPECT_EQ(odd.created_first, std::nullopt);
    EXPECT_EQ(odd.created_last, std::nullopt);
}

}  // namespace
}  // namespace fullstop::wire
