// The least number of tokens, for vocabularies of every kind: never more than any way to cut a text
// into pieces needs.
#include "adapters/llama/text/length_bound.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <string>
#include <vector>

namespace fullstop::adapters::llama {
namespace {

using base::Tokens;

const std::vector<std::string> kCharacters = {"a", "b", " ", "<", "\n", "\xC3\xA9", "\xE2\x96\x81"};

std::string some_piece() {
    std::string piece;
    for (int left = *rc::gen::inRange(1, 6); left > 0; --left)
        piece += *rc::gen::elementOf(kCharacters);
    return piece;
}

/// As a text may have it: a piece's blank may be a blank, or written as U+2581.
std::string covered_by(std::string piece) {
    for (std::size_t at = 0; at < piece.size(); ++at) {
        if (piece[at] == ' ' && *rc::gen::arbitrary<bool>()) piece.replace(at, 1, "\xE2\x96\x81");
        if (piece.substr(at, 3) == "\xE2\x96\x81" && *rc::gen::arbitrary<bool>())
            piece.replace(at, 3, " ");
    }
    return piece;
}

TEST(LengthBound, HoldsHoweverATextIsCutIntoPieces) {
    int claimed = 0;
    EXPECT_TRUE(rc::check([&] {
        std::vector<std::string> pieces;
        for (int left = *rc::gen::inRange(1, 12); left > 0; --left) pieces.push_back(some_piece());
        std::set<char> alone;
        for (const std::string& piece : pieces)
            if (piece.size() == 1) alone.insert(piece.front());
        const bool drops_blanks = *rc::gen::arbitrary<bool>();
        const LengthBound bound(pieces, drops_blanks);
        std::string text;
        const int count = *rc::gen::inRange(0, 60);
        for (int i = 0; i < count; ++i) {
            text += covered_by(*rc::gen::elementOf(pieces));
            if (drops_blanks)
                text += *rc::gen::elementOf(std::vector<std::string>{"", " ", "\n  "});
            for (const char c : std::string("ab<"))
                if (!alone.contains(c))
                    text.append(*rc::gen::inRange<std::size_t>(0, 2),
                                c);  // has no token: may be dropped
        }
        const auto least = bound.least_tokens(text).count;
        if (least > 0) ++claimed;
        RC_ASSERT(least <= count);
    }));
    EXPECT_GT(claimed, 10) << "something is claimed of many of them";
}

TEST(LengthBound, ARunCostsWhatTheLongestPieceOfItCosts) {
    const std::vector<std::string> pieces = {"<", "<<<<", " ", "    ", "abc", "a", "b", "c"};
    const LengthBound bound(pieces, false);
    EXPECT_EQ(bound.least_tokens(std::string(400, '<')), Tokens{100});
    EXPECT_EQ(bound.least_tokens(std::string(403, '<')), Tokens{100});
    EXPECT_EQ(bound.least_tokens(std::string(400, ' ')), Tokens{100});
    EXPECT_EQ(bound.least_tokens("<<<<<<<<ab"), Tokens{2});
}

TEST(LengthBound, NothingIsClaimedOfBytesThatMayVanish) {
    const std::vector<std::string> pieces = {"a", " ", "bb"};
    EXPECT_EQ(LengthBound(pieces, false).least_tokens("bbbbbbbb"), Tokens{0})
        << "no token is 'b' alone: it may be dropped";
    EXPECT_EQ(LengthBound(pieces, true).least_tokens("a        a"), Tokens{2})
        << "white space goes with a control token";
    EXPECT_EQ(LengthBound(pieces, false).least_tokens("aaaa\xFF"), Tokens{0})
        << "not UTF-8: read as something else";
}

}  // namespace
}  // namespace fullstop::adapters::llama
