#include "observe/server_log.h"

#include <gtest/gtest.h>

namespace fullstop::observe {
namespace {

TEST(ServerLog, CountsKnownSentencesAndKeepsTheFirstLine) {
    const auto signs = read_log(
        "srv  update_slots: failed to find free space in the KV cache, retrying with smaller batch "
        "size, n_batch = 4\r\n"
        "srv  send_error: task id = 7, error: Context size has been exceeded.\n"
        "srv  send_error: task id = 9, error: Context size has been exceeded.");
    ASSERT_EQ(signs.size(), 2u);
    EXPECT_EQ(signs[0].count, 2);
    EXPECT_EQ(signs[0].cause, answer::Cause::kKvPoolExhausted);
    EXPECT_EQ(signs[0].first_line,
              "srv  send_error: task id = 7, error: Context size has been exceeded.");
    EXPECT_EQ(describe(signs[0]),
              "the server's log says 2 times 'Context size has been exceeded' (kv_pool_exhausted)");
}

TEST(ServerLog, IsSilentOnAHealthyLogAndOnGarbage) {
    EXPECT_TRUE(read_log("").empty());
    EXPECT_TRUE(
        read_log("slot release: id 3 | stop processing: n_tokens = 90, truncated = 0\n").empty());
    EXPECT_TRUE(read_log(std::string("\0\xff\n\n\x80", 5)).empty());
}

TEST(ServerLog, BoundsALongFirstLine) {
    const auto signs = read_log("upstream timed out " + std::string(10000, 'x'));
    ASSERT_EQ(signs.size(), 1u);
    EXPECT_EQ(signs[0].first_line.size(), 300u);
}

}  // namespace
}  // namespace fullstop::observe
