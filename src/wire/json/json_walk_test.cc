// Strict where readers differ, and bounded.
#include "wire/json/json_walk.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "base/random.h"

namespace fullstop::wire {
namespace {

class Heard : public JsonListener {
public:
    explicit Heard(std::string source) : source_(std::move(source)) {
        end = walk_json(source_, {.values = 1000, .depth = 20}, *this);
    }
    void hear(const WalkedValue& value) override {
        std::string line = std::to_string(value.depth) + " " + std::string(value.key) + "=" +
                           std::string(value.text);
        if (value.to > 0)
            line += " <" + source_.substr(value.from, value.to - value.from) + ">";
        else
            line += std::string(" ") + source_[value.from];
        lines.push_back(std::move(line));
    }
    WalkEnd end = WalkEnd::kNoJson;
    std::vector<std::string> lines;

private:
    std::string source_;
};

TEST(JsonWalk, EveryValueIsToldWithItsPlace) {
    const Heard heard(
        R"( { "a" : 1e400 , "m\u005fx":"q\"\u00e9", "c":[ true,{"d":null}, -0.5 ], "e":{} } )");
    EXPECT_EQ(heard.end, WalkEnd::kWhole);
    EXPECT_EQ(heard.lines,
              (std::vector<std::string>{"0 = {", "1 a=1e400 <1e400>", R"(1 m_x=q"é <"q\"\u00e9">)",
                                        "1 c= [", "2 =true <true>", "2 = {", "3 d=null <null>",
                                        "2 =-0.5 <-0.5>", "1 e= {"}));
    EXPECT_EQ(Heard("[99999999999999999999999, 0, -1.5E+7]").end, WalkEnd::kWhole);
    EXPECT_EQ(Heard(R"({"x":"\ud800"})").lines.back(), R"(1 x=\ud800 <"\ud800">)");
}

TEST(JsonWalk, WhatSomeReadersTakeForJsonIsNone) {
    for (const std::string text : {"",
                                   " ",
                                   "5",
                                   "\"x\"",
                                   "\xEF\xBB\xBF{}",
                                   R"({"x":NaN})",
                                   R"({"x":-Infinity})",
                                   R"({"x":1/**/})",
                                   R"({"x":[1 /*"*/,2]})",
                                   "{}x",
                                   "{}{}",
                                   "{,}",
                                   R"({"x":1,})",
                                   "[1,]",
                                   "[1 2]",
                                   R"({"x" 1})",
                                   R"({x:1})",
                                   R"({'x':1})",
                                   "[01]",
                                   "[+1]",
                                   "[1.]",
                                   "[.5]",
                                   "[1e]",
                                   "[0x1]",
                                   "[tru]",
                                   "[nul]",
                                   "[\"a\nb\"]",
                                   "[\"\xFF\"]",
                                   R"({"\ud800":1})",
                                   R"({"\q":1})",
                                   R"(["\q"])",
                                   R"(["\u12g4"])",
                                   "{",
                                   "[",
                                   "[}",
                                   "{]",
                                   R"({"x":[1})",
                                   "[1]]",
                                   "\"",
                                   "[\"",
                                   "[\"\\"})
        EXPECT_EQ(Heard(text).end, WalkEnd::kNoJson) << text;
    EXPECT_EQ(Heard(std::string("[1]\0", 4)).end, WalkEnd::kNoJson);
}

TEST(JsonWalk, WhatAStringHoldsIsCountedUnescaped) {
    class Bytes : public JsonListener {
    public:
        void hear(const WalkedValue& value) override { bytes = value.bytes; }
        std::size_t bytes = 0;
    };
    const auto bytes_of = [](const std::string& inside) {
        Bytes heard;
        EXPECT_EQ(walk_json("[\"" + inside + "\"]", {.values = 10, .depth = 2}, heard),
                  WalkEnd::kWhole)
            << inside;
        return heard.bytes;
    };
    EXPECT_EQ(bytes_of(R"(a\n\"\\\/)"), 5U);
    EXPECT_EQ(bytes_of(R"(\u0041\u00e9\u4f60\ud83d\ude00)"), 1U + 2 + 3 + 4);
    EXPECT_EQ(bytes_of("\u00e9\u4f60"), 5U);
    EXPECT_EQ(bytes_of(std::string(10'000, 'x') + "\\n"), 10'001U);
}

/// Against another strict reader, on texts that are broken in one or two places.
TEST(JsonWalk, IsAsStrictAsTheLibraryThatWritesOurDocuments) {
    const std::string whole =
        R"({"a":[1,-2.5e+3,"x\u00e9\n",true,false,null,{}],"b\t":{"c":""},"d":[[],0]} )";
    constexpr std::string_view kBytes = "{}[]:,\"\\ue01-+.tfn \n\x01\xC3/*x";
    base::Random random(7);
    for (int run = 0; run < 30'000; ++run) {
        std::string text = whole;
        for (std::uint64_t broken = random.below(3); broken > 0; --broken) {
            const std::size_t at = random.below(text.size());
            const char byte = kBytes[random.below(kBytes.size())];
            switch (random.below(3)) {
                case 0: text[at] = byte; break;
                case 1: text.erase(at, 1); break;
                default: text.insert(at, 1, byte);
            }
        }
        boost::system::error_code error;
        const auto parsed = boost::json::parse(text, error);
        if (!error && !parsed.is_structured()) continue;
        if (error == boost::json::error::illegal_leading_surrogate ||
            error == boost::json::error::illegal_trailing_surrogate)
            continue;
        ASSERT_EQ(Heard(text).end == WalkEnd::kWhole, !error) << text << " " << error.message();
    }
}

TEST(JsonWalk, BoundsEndItWhereTheyAreReached) {
    std::string many = "[0";
    for (int i = 0; i < 2000; ++i) many += ",{}";
    const Heard heard(many + "]");
    EXPECT_EQ(heard.end, WalkEnd::kTooManyValues);
    EXPECT_EQ(heard.lines.size(), 1000U);
    EXPECT_EQ(Heard("[\"" + std::string(5000, ',') + "\\\"[" + "\"]").end, WalkEnd::kWhole)
        << "text may hold any number of them";
    EXPECT_EQ(Heard(std::string(20, '[') + std::string(20, ']')).end, WalkEnd::kWhole);
    EXPECT_EQ(Heard(std::string(22, '[') + std::string(22, ']')).end, WalkEnd::kTooDeep);
    EXPECT_EQ(Heard(std::string(900, '[')).end, WalkEnd::kTooDeep);
}

}  // namespace
}  // namespace fullstop::wire
