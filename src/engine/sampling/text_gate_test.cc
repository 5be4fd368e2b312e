// Text comes out whole: no half characters, no beginnings of stop strings, nothing lost.
#include "engine/sampling/text_gate.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace fullstop::engine {
namespace {

struct Shown {
    std::string text;
    std::optional<std::string> stop;
    bool operator==(const Shown&) const = default;
};

Shown show(const std::vector<std::string>& pieces, const std::vector<std::string>& stops) {
    TextGate gate(stops);
    Shown shown;
    for (const auto& piece : pieces) {
        shown.text += gate.push(piece);
        if (gate.stopped_by()) break;
    }
    shown.stop = gate.stopped_by();
    if (!shown.stop) shown.text += gate.flush();
    return shown;
}

std::vector<std::string> bytes_of(const std::string& text) {
    std::vector<std::string> out;
    for (const char c : text) out.emplace_back(1, c);
    return out;
}

TEST(TextGate, AStopStringIsFoundAtEveryTokenBorder) {
    const std::string text = "one two END three";
    for (std::size_t a = 0; a <= text.size(); ++a)
        for (std::size_t b = a; b <= text.size(); ++b)
            EXPECT_EQ(show({text.substr(0, a), text.substr(a, b - a), text.substr(b)}, {"END"}),
                      (Shown{"one two ", "END"}))
                << a << ' ' << b;
}

TEST(TextGate, WhatOnlyBeganLikeAStopStringIsShownInFull) {
    EXPECT_EQ(show({"abc E", "N"}, {"END"}), (Shown{"abc EN", std::nullopt}));
    EXPECT_EQ(show({"aaab", "aaac"}, {"aaaac", "baab"}), (Shown{"aaabaaac", std::nullopt}));
    EXPECT_EQ(show({"\n", "\n", "x"}, {"\n\n\n"}), (Shown{"\n\nx", std::nullopt}));
}

TEST(TextGate, HeldBackTextLeavesWithTheNextTokenThatSettlesIt) {
    TextGate gate({"END"});
    EXPECT_EQ(gate.push("abE"), "ab");
    EXPECT_EQ(gate.push("N"), "");
    EXPECT_EQ(gate.push("c"), "ENc");
}

TEST(TextGate, TheStopStringThatIsCompleteFirstWinsAndOfTwoAtOnceTheLonger) {
    EXPECT_EQ(show({"xabcd"}, {"abcd", "b"}), (Shown{"xa", "b"}));
    EXPECT_EQ(show({"xabc"}, {"c", "abc", "bc"}), (Shown{"x", "abc"}));
}

TEST(TextGate, CharactersAreNeverSplit) {
    const std::string text = "aé€😀z";
    TextGate gate({});
    for (const auto& byte : bytes_of(text)) {
        const std::string out = gate.push(byte);
        EXPECT_TRUE(out.empty() || out == "a" || out == "é" || out == "€" || out == "😀" ||
                    out == "z")
            << out;
    }
    EXPECT_EQ(show(bytes_of(text), {}).text, text);
}

TEST(TextGate, BytesThatAreNoCharacterAreShownAsReplacements) {
    EXPECT_EQ(show({"a\xFF"
                    "b"},
                   {})
                  .text,
              "a\xEF\xBF\xBD"
              "b");
    EXPECT_EQ(show({"a\xE2\x82"}, {}).text, "a\xEF\xBF\xBD")
        << "an unfinished character at the end is not lost silently";
    EXPECT_EQ(show({"\xC0\xAF"}, {}).text, "\xEF\xBF\xBD\xEF\xBF\xBD") << "overlong";
    EXPECT_EQ(show({"\xED\xA0\x80"}, {}).text, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD")
        << "a surrogate";
    EXPECT_EQ(show({"\xE2", "A"}, {}).text,
              "\xEF\xBF\xBD"
              "A");
}

TEST(TextGate, AnyCutOfTheSameBytesShowsTheSameText) {
    EXPECT_TRUE(rc::check([] {
        const auto alphabet = rc::gen::elementOf(std::vector<std::string>{
            "a", "b", "ab", "é", "\xE2", "\x82", "\xAC", "€", "\xFF", " "});
        const auto parts = *rc::gen::container<std::vector<std::string>>(alphabet);
        const auto stops = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
            std::vector<std::string>{"ab", "aab", "ba", "€a", "é", " a b", "\x82"}));
        std::string text;
        for (const auto& part : parts) text += part;
        const Shown whole = show({text}, stops);
        RC_ASSERT(show(parts, stops) == whole);
        RC_ASSERT(show(bytes_of(text), stops) == whole);
        if (!whole.stop) {
            for (const auto& stop : stops) RC_ASSERT(text.find(stop) == std::string::npos);
        }
    }));
}

}  // namespace
}  // namespace fullstop::engine
