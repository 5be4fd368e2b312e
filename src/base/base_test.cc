#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/sha256.h"
#include "base/time.h"
#include "base/units.h"
#include "base/utf8.h"

namespace fullstop::base {
namespace {

TEST(Sha256, MatchesThePublishedVectors) {  // FIPS 180-2, B.1 and the empty message
    EXPECT_EQ(sha256_hex("abc"),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Random, GivesTheSameNumbersForTheSameSeed) {
    Random random(1234567);  // reference output of SplitMix64 for this seed
    EXPECT_EQ(random.next(), 6457827717110365317ULL);
    EXPECT_EQ(random.next(), 3203168211198807973ULL);
    EXPECT_EQ(random.next(), 9817491932198370423ULL);
}

TEST(Random, StaysInRangeAndHasTheStatedMoments) {
    Random random(7);
    double sum = 0, squares = 0, exponential = 0;
    constexpr int kDraws = 100000;
    for (int i = 0; i < kDraws; ++i) {
        ASSERT_LT(random.below(10), 10u);
        const double u = random.uniform();
        ASSERT_GE(u, 0);
        ASSERT_LT(u, 1);
        const double n = random.normal();
        sum += n;
        squares += n * n;
        exponential += random.exponential(3);
    }
    EXPECT_NEAR(sum / kDraws, 0, 0.02);
    EXPECT_NEAR(squares / kDraws, 1, 0.03);
    EXPECT_NEAR(exponential / kDraws, 3, 0.06);
}

TEST(Units, RoundTokensUpToWholeBlocks) {
    EXPECT_EQ(blocks_for(Tokens{0}, Tokens{16}), Blocks{0});
    EXPECT_EQ(blocks_for(Tokens{1}, Tokens{16}), Blocks{1});
    EXPECT_EQ(blocks_for(Tokens{16}, Tokens{16}), Blocks{1});
    EXPECT_EQ(blocks_for(Tokens{17}, Tokens{16}), Blocks{2});
}

TEST(Time, ConvertsMillisecondsBothWays) {
    EXPECT_DOUBLE_EQ(to_ms(from_ms(12.5)), 12.5);
    EXPECT_DOUBLE_EQ(to_seconds(from_ms(1500)), 1.5);
}

TEST(Utf8, TheFrontOfATextEndsBehindACharacter) {
    const std::string text = "a\u00e9\u20ac\U0001F600";  // 1, 2, 3 and 4 bytes
    const std::vector<std::size_t> expected = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    for (std::size_t most = 0; most < expected.size(); ++most)
        EXPECT_EQ(front_characters(text, most).size(), expected[most]) << most;
    EXPECT_EQ(front_characters(std::string(9, '\x80'), 5).size(), 5U) << "no character there";
}

}  // namespace
}  // namespace fullstop::base
