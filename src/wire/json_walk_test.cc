// Strict where readers differ, and bounded before anything is built.
#include "wire/json_walk.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fullstop::wire {
namespace {

class Heard : public JsonListener {
public:
    explicit Heard(std::string source) : source_(std::move(source)) { end = walk_json(source_, {.values = 1000, .depth = 20}, *this); }
    void hear(const WalkedValue& value) override {
        std::string line = std::to_string(value.depth) + " " + std::string(value.key) + "=" + std::string(value.text);
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
    const Heard heard(R"( { "a" : 1e400 , "m\u005fx":"q\"\u00e9", "c":[ true,{"d":null}, -0.5 ], "e":{} } )");
    EXPECT_EQ(heard.end, WalkEnd::kWhole);
    EXPECT_EQ(heard.lines, (std::vector<std::string>{"0 = {", "1 a=1e400 <1e400>", R"(1 m_x=q"é <"q\"\u00e9">)", "1 c= [", "2 =true <true>", "2 = {",
                                                     "3 d=null <null>", "2 =-0.5 <-0.5>", "1 e= {"}));
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

TEST(JsonWalk, BoundsEndItBeforeAnythingIsHeard) {
    std::string many = "[0";
    for (int i = 0; i < 2000; ++i) many += ",{}";
    const Heard heard(many + "]");
    EXPECT_EQ(heard.end, WalkEnd::kTooManyValues);
    EXPECT_TRUE(heard.lines.empty());
    EXPECT_EQ(Heard("[\"" + std::string(5000, ',') + "\\\"[" + "\"]").end, WalkEnd::kWhole) << "text may hold any number of them";
    EXPECT_EQ(Heard(std::string(20, '[') + std::string(20, ']')).end, WalkEnd::kWhole);
    EXPECT_EQ(Heard(std::string(22, '[') + std::string(22, ']')).end, WalkEnd::kTooDeep);
    EXPECT_EQ(Heard(std::string(900, '[')).end, WalkEnd::kTooDeep);
}

}  // namespace
}  // namespace fullstop::wire
