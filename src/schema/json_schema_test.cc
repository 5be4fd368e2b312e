// Which schemas are taken, and what is said about the others; the pieces of their grammars.
#include "schema/json_schema.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cmath>
#include <functional>
#include <regex>
#include <set>

#include "base/random.h"
#include "schema/digit_ranges.h"
#include "schema/excluded_names.h"
#include "schema/grammar.h"
#include "schema/limits.h"
#include "schema/literal_tree.h"

namespace fullstop::schema {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::StartsWith;

/// "" when the schema is taken.
std::string wrong(std::string_view schema) {
    const auto read = read_schema(json::parse(schema));
    return read ? "" : read.error();
}

TEST(JsonSchema, WhatPeopleSendIsTaken) {
    const std::vector<const char*> all = {
        R"({})",
        R"(true)",
        R"({"type":"object"})",
        R"({"title":"T","description":"d","type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":false})",
        R"({"properties":{"a":{}}})",
        R"({"type":["string","null"],"maxLength":5})",
        R"({"type":"array","items":{"$ref":"#/$defs/p"},"minItems":1,"maxItems":3,"$defs":{"p":{"enum":["a","b",1,null,{"x":[1]}]}}})",
        R"({"anyOf":[{"type":"string"},{"type":"null"}]})",
        R"({"oneOf":[{"type":"string"},{"type":"integer"}]})",
        R"({"allOf":[{"$ref":"#/definitions/p"}],"description":"as older generators write it","definitions":{"p":{"const":"x"}}})",
        R"({"type":"object","properties":{"value":{"type":"string"},"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["value","next"]})",
        R"({"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}}})",
        R"({"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"minItems":2,"maxItems":2})",
        R"({"type":"string","format":"date-time"})",
        R"({"type":"string","pattern":"^[A-Z]{2}-\\d{3,4}(?: (north|south))?$"})",
        R"({"type":"integer","minimum":0,"exclusiveMaximum":10})",
        R"({"type":"object","additionalProperties":{"type":"number","minimum":0,"maximum":1}})",
        R"({"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"discriminator":{"propertyName":"k"},"$defs":{)"
        R"("a":{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},"b":{"type":"object","properties":{"k":{"enum":["b","c"]}},"required":["k"]}}})",
        R"({"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{"type":"boolean"}},"x-order":1})",
    };
    for (const char* schema : all) EXPECT_EQ(wrong(schema), "") << schema;
}

TEST(JsonSchema, AKeywordThatCannotBeHeldToIsNamedWithItsPlace) {
    const std::vector<std::pair<const char*, const char*>> all = {
        {R"(7)", R"(at "": a schema is an object)"},
        {R"(false)", "false allows no value"},
        {R"({"type":"object","properties":{"a/b":{"type":"string","contentEncoding":"x"}}})",
         R"(at "/properties/a~1b": contentEncoding is not honoured)"},
        {R"({"type":"string","minimum":0})",
         "minimum is honoured for type integer and number only"},
        {R"({"type":"number","exclusiveMinimum":0})",
         "exclusiveMinimum is honoured for type integer only"},
        {R"({"type":"number","minimum":0.5})", "minimum is honoured where it is a whole number"},
        {R"({"type":"number","minimum":2,"maximum":1})", "no number is between"},
        {R"({"oneOf":[{"type":"object","properties":{"k":{"const":1}}},{"type":"object","properties":{"k":{"const":2}}}]})",
         "oneOf is honoured where"},
        {R"({"oneOf":[{"type":"object","properties":{"k":{"const":1}},"required":["k"]},{"type":"object","properties":{"k":{"enum":[2,1]}},"required":["k"]}]})",
         "oneOf is honoured where"},
        {R"({"minimum":0})", "type is missing"},
        {R"({"type":"array","uniqueItems":true})", "uniqueItems is not honoured"},
        {R"({"type":"object","patternProperties":{}})", "patternProperties"},
        {R"({"not":{}})", "not is not honoured"},
        {R"({"if":{}})", "if is not honoured"},
        {R"({"type":"robot"})", "type is one or several of"},
        {R"({"type":["null","null"]})", "type is one or several of"},
        {R"({"type":[]})", "type names nothing"},
        {R"({"properties":{},"items":{}})", "type is missing"},
        {R"({"type":"string","items":{}})", "items is honoured for type array only"},
        {R"({"type":"object","required":["a"]})", R"(required names "a")"},
        {R"({"type":"object","properties":{"a":{}},"required":[7]})", "required names 7"},
        {R"({"type":"object","properties":[]})", "properties is an object"},
        {R"({"$ref":"https://example.org/s.json"})", "nothing else is fetched"},
        {R"({"$ref":"#/$defs/nowhere"})", "leads nowhere"},
        {R"({"$ref":"#"})", "without end"},
        {R"({"$ref":7})", "$ref is a text"},
        {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "without end"},
        {R"({"type":"object","properties":{"a":{"$ref":"#/properties/a"}}})", "without end"},
        {R"({"$ref":"#/$defs/a","minLength":1,"$defs":{"a":{"type":"string"}}})",
         "minLength beside $ref"},
        {R"({"type":"object","anyOf":[{}]})", "type beside anyOf"},
        {R"({"anyOf":[]})", "anyOf is a list of at least one"},
        {R"({"anyOf":[{"type":"string"}],"enum":["a"]})", "together are not honoured"},
        {R"({"allOf":[{},{}]})", "allOf of more than one"},
        {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "oneOf is honoured where"},
        {R"({"enum":[]})", "enum is a list"},
        {R"({"type":"string","enum":["a",1]})", "1 is not of the type"},
        {R"({"type":"string","minLength":3,"maxLength":2})", "minLength is above"},
        {R"({"type":"string","maxLength":-1})", "maxLength is a whole number from 0"},
        {R"({"type":"string","maxLength":100000})", "from 0 to 2000"},
        {R"({"type":"array","items":{"type":"string","maxLength":20},"maxItems":9223372036854775807})",
         "maxItems is a whole number from 0 to 2000"},
        {R"({"type":"string","pattern":7})", "pattern is a text"},
        {R"({"type":"string","pattern":"^a$","maxLength":3})", "pattern beside a length"},
        {R"({"type":"string","pattern":"abc"})", "pattern: it begins with ^ and ends with $"},
        {R"({"type":"string","format":"email"})", R"(format "email" is not honoured)"},
        {R"({"type":"integer","minimum":3,"maximum":2})", "no whole number"},
        {R"({"type":"integer","minimum":0.5})", "minimum is honoured where"},
        {R"({"type":"integer","minimum":1e300})", "minimum is honoured where"},
        {R"({"type":"integer","minimum":0,"exclusiveMinimum":0})", "together"},
        {R"({"type":"array","prefixItems":[{}],"minItems":2})", "prefixItems is honoured"},
        {R"({"type":"array","minItems":2,"maxItems":1})", "minItems is above"},
    };
    for (const auto& [schema, words] : all) EXPECT_THAT(wrong(schema), HasSubstr(words)) << schema;
}

std::string properties(int count, std::string_view value = R"({"type":"string"})") {
    std::string all;
    for (int i = 0; i < count; ++i) all += fmt::format("{}\"p{}\":{}", i == 0 ? "" : ",", i, value);
    return all;
}

TEST(JsonSchema, HostileOnesAreRefusedSoon) {
    std::string chain, tree, words;
    for (int i = 0; i < 400; ++i) {
        chain += fmt::format(R"({}"d{}":{{"$ref":"#/$defs/d{}"}})", i == 0 ? "" : ",", i, i + 1);
        tree += fmt::format(
            R"({0}"d{1}":{{"anyOf":[{{"$ref":"#/$defs/d{2}"}},{{"type":"array","items":{{"$ref":"#/$defs/d{2}"}}}}]}})",
            i == 0 ? "" : ",", i, i + 1);
    }
    for (int i = 0; i < 2000; ++i) words += fmt::format("{}\"w{}\"", i == 0 ? "" : ",", i);
    const std::vector<std::pair<std::string, std::string>> all = {
        {fmt::format(R"({{"type":"object","properties":{{{}}}}})", properties(6000, "{}")),
         "more than 5000 parts"},
        {fmt::format(R"({{"type":"object","properties":{{{}}}}})", properties(300)),
         "more than 128 beginnings"},
        {fmt::format(R"({{"enum":[{}]}})", words), "more than 1000 values"},
        {fmt::format(R"({{"description":"{}"}})", std::string(200'000, 'x')),
         "at most 131072 are taken"},
        {fmt::format(R"({{"type":"object","properties":{{"{}":{{}}}}}})", std::string(300, 'x')),
         "at most 256 bytes"},
        {fmt::format(R"({{"type":"object","properties":{{{}}}}})",
                     properties(90, R"({"type":"string","maxLength":2000})")),
         "add up to more than 10000"},
        {fmt::format(R"({{"$ref":"#/$defs/d0","$defs":{{{},"d400":{{"type":"string"}}}}}})", chain),
         ""},
        {fmt::format(R"({{"$ref":"#/$defs/d0","$defs":{{{},"d400":{{"$ref":"#/$defs/d0"}}}}}})",
                     chain),
         "without end"},
        {fmt::format(R"({{"$ref":"#/$defs/d0","$defs":{{{},"d400":{{"type":"array"}}}}}})", tree),
         "more than 128 beginnings"},
        // Two ways to read each bracket: 2^n after n of them.
        {R"({"anyOf":[{"type":"array","items":{"$ref":"#"}},{"type":"array","items":{"$ref":"#"},"maxItems":3}]})",
         "more than 128 beginnings"},
        {R"({"anyOf":[{"$ref":"#"},{"type":"string"}]})", "more than 128 beginnings"},
    };
    for (const auto& [schema, words_of] : all) {
        const auto begin = std::chrono::steady_clock::now();
        const std::string said = wrong(schema);
        if (words_of.empty())
            EXPECT_EQ(said, "") << schema.substr(0, 80);
        else
            EXPECT_THAT(said, HasSubstr(words_of)) << schema.substr(0, 80);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1))
            << schema.substr(0, 80);
    }
}

/// Real schemas whose words stand at wrong places, are missing or come twice: a grammar or a
/// sentence, never anything else.
TEST(Garbage, schemas_of_shuffled_words_are_taken_or_refused_with_a_sentence) {
    const std::vector<const char*> words = {"type",      "object",
                                            "array",     "string",
                                            "integer",   "properties",
                                            "items",     "required",
                                            "enum",      "const",
                                            "anyOf",     "oneOf",
                                            "allOf",     "$ref",
                                            "#",         "#/$defs/a",
                                            "$defs",     "a",
                                            "minItems",  "maxItems",
                                            "maxLength", "additionalProperties",
                                            "null",      "format",
                                            "minimum",   "prefixItems"};
    base::Random random(20);
    const std::function<json::value(int)> any = [&](int depth) -> json::value {
        const auto kind = random.below(depth > 5 ? 5 : 9);
        if (kind == 0) return static_cast<std::int64_t>(random.below(5)) - 1;
        if (kind == 1) return random.chance(0.5);
        if (kind < 5) return json::string(words[random.below(words.size())]);
        if (kind < 6) {
            json::array list;
            for (auto left = random.below(4); left > 0; --left) list.push_back(any(depth + 1));
            return list;
        }
        json::object object;
        for (auto left = random.below(4); left > 0; --left) {
            const char* key = words[random.below(words.size())];
            object[key] = key == std::string_view("type") && random.chance(0.8)
                              ? json::value(words[1 + random.below(4)])
                              : any(depth + 1);
        }
        return object;
    };
    int taken = 0;
    for (int i = 0; i < 20'000; ++i) {
        const json::value schema = any(0);
        const auto read = read_schema(schema);
        if (read) {
            ++taken;
            EXPECT_THAT(grammar_of(*read), StartsWith("root ::= n0\n"));
        } else {
            EXPECT_GT(read.error().size(), 10U) << json::serialize(schema);
        }
    }
    EXPECT_GT(taken, 100) << "some are schemas by chance";
}

/// The few forms of GBNF that these pieces use mean the same in a regular expression without quotes
/// and blanks.
std::regex as_regex(std::string grammar) {
    std::erase_if(grammar, [](char c) { return c == '"' || c == ' '; });
    return std::regex(grammar, std::regex::extended);
}

TEST(DigitRanges, HoldExactlyTheNumbersBetweenTheBounds) {
    base::Random random(4);
    for (int i = 0; i < 60; ++i) {
        const std::int64_t scale = i % 3 == 0 ? 20 : i % 3 == 1 ? 300 : 12'000;
        std::int64_t low =
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * scale))) - scale;
        std::int64_t high =
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * scale))) - scale;
        if (low > high) std::swap(low, high);
        const std::regex form = as_regex(digit_ranges(low, high));
        std::set<std::int64_t> numbers = {0,   1,   -1,   9,       10,       -10,     99,
                                          100, low, high, low - 1, high + 1, low + 1, high - 1};
        for (int k = 0; k < 200; ++k)
            numbers.insert(
                static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(4 * scale))) -
                2 * scale);
        for (const std::int64_t number : numbers)
            EXPECT_EQ(std::regex_match(std::to_string(number), form),
                      low <= number && number <= high)
                << number << " in " << low << " to " << high;
        for (const char* no : {"-0", "00", "01", "", "-"})
            EXPECT_FALSE(std::regex_match(no, form)) << no;
    }
    EXPECT_TRUE(std::regex_match("999999999999999",
                                 as_regex(digit_ranges(-kMaxWholeNumber, kMaxWholeNumber))));
    EXPECT_FALSE(std::regex_match("1000000000000000",
                                  as_regex(digit_ranges(-kMaxWholeNumber, kMaxWholeNumber))));
}

TEST(DigitRanges, HoldDecimalNumbersBetweenTheBoundsToo) {
    base::Random random(5);
    for (int i = 0; i < 60; ++i) {
        std::int64_t low = static_cast<std::int64_t>(random.below(40)) - 20,
                     high = static_cast<std::int64_t>(random.below(40)) - 20;
        if (low > high) std::swap(low, high);
        std::string grammar = decimal_ranges(low, high);
        for (std::size_t at = 0; (at = grammar.find("\".\"", at)) != std::string::npos; at += 3)
            grammar.replace(at, 3, "[.]");
        const std::regex form = as_regex(grammar);
        for (int k = 0; k < 300; ++k) {
            const double number =
                static_cast<double>(static_cast<std::int64_t>(random.below(5000)) - 2500) / 100;
            const std::string text = fmt::format("{:.2f}", number);
            const bool whole =
                number == std::trunc(number);  // "5.00" may be left out where 5 is the bound
            const bool between =
                static_cast<double>(low) <= number && number <= static_cast<double>(high);
            if (std::regex_match(text, form))
                EXPECT_TRUE(between) << text << " in " << low << " to " << high;
            if (between && !whole)
                EXPECT_TRUE(std::regex_match(text, form))
                    << text << " in " << low << " to " << high;
        }
    }
}

TEST(TextPattern, WhatIsNotHonouredIsSaid) {
    const std::vector<std::pair<std::string, const char*>> all = {
        {"", "begins with ^"},
        {"a$", "begins with ^"},
        {"^a", "ends with $"},
        {"^a|b$", "in a group"},
        {"^a$|^b$", "not honoured"},
        {"^(?=a)b$", "a group is"},
        {"^(?<n>a)$", "a group is"},
        {"^(a$", "not closed"},
        {"^a)$", "byte 2"},
        {"^[a$", "not closed"},
        {"^\\1$", "escape at byte 1"},
        {"^\\b$", "escape at byte 1"},
        {"^\\p{L}$", "escape"},
        {"^*a$", "the * at byte 1"},
        {"^a**$", "behind another"},
        {"^a+?$", "behind another"},
        {"^(a*)*$", "taken"},
        {"^(a|)+$", "taken"},
        {"^(){2000}(((){2000}){2000}){2000}$", "taken"},
        {"^" + std::string(5000, 'a') + "$", "more than 4096 bytes"},
        {"^[ab]*a[ab]{20}$", "states"},
        {"^a{3,2}$", "a repetition"},
        {"^a{x}$", "a repetition"},
        {"^a{0}$", "a repetition"},
        {"^a{99999}$", "a repetition"},
        {"^.{200}$", "taken"},
        {"^.{300}$", "more than 256"},
        {"^(a{50}){50}$", "more than"},
        {"^[b-a]$", "backwards"},
        {"^[]$", "allows control"},
        {"^\\n$", "allows control"},
        {"^a\\", "backslash"},
        {"^\\u12$", "too few digits"},
        {"^a^$", "the ^ at byte 2"},
        {"^a]$", "the ] at byte 2"},
        {"^" + std::string(30, '(') + "a" + std::string(30, ')') + "$", "nested deeper"},
    };
    for (const auto& [pattern, words] : all) {
        std::size_t work = kMaxPatternWork;
        const auto read = read_pattern(pattern, work);
        EXPECT_THAT(read ? "taken" : read.error(), HasSubstr(words)) << pattern;
    }
}

/// Whether a place spelled as ranges of code points allows `c`.
bool allows(std::string_view spelling, char c) {
    const auto code = [&](std::size_t at) {
        return std::stoul(std::string(spelling.substr(at + 2, 8)), nullptr, 16);
    };
    for (std::size_t at = spelling.find("\\U"); at != std::string_view::npos;
         at = spelling.find("\\U", at + 21))
        if (code(at) <= static_cast<unsigned char>(c) &&
            static_cast<unsigned char>(c) <= code(at + 11))
            return true;
    return false;
}

/// Whether `text`, of characters that need no escape, walks through the automaton to an end.
bool reads(const TextPattern& pattern, std::string_view text) {
    std::size_t state = 0;
    for (const char c : text) {
        std::vector<std::size_t> to;
        for (const auto& way : pattern.states[state].ways)
            if (allows(way.character, c)) to.push_back(way.to);
        EXPECT_LE(to.size(), 1U) << "one way for each next character";
        if (to.empty()) return false;
        state = to.front();
    }
    return pattern.states[state].ends;
}

TEST(TextPattern, ReadsWhatARegularExpressionReadsWithOneWayForEachCharacter) {
    base::Random random(5);
    for (const char* pattern :
         {"^(a*|b*)(a*|b*)(a|ab)(c|bcd)?$", "^[ab]*a[ab]{3}$", "^(a|b){2,4}c+$", "^((ab?)*c){0,2}$",
          "^(a?){5}b{2,}$", "^$", "^([a-c]|bb)*a$"}) {
        std::size_t work = kMaxPatternWork;
        const auto read = read_pattern(pattern, work);
        ASSERT_TRUE(read) << read.error();
        const std::regex expected(pattern);
        int hits = 0;
        for (int i = 0; i < 400; ++i) {
            std::string text;
            for (auto left = random.below(9); left > 0; --left) text += "abcd"[random.below(4)];
            const bool fits = std::regex_match(text, expected);
            hits += fits ? 1 : 0;
            EXPECT_EQ(reads(*read, text), fits) << pattern << " " << text;
        }
        EXPECT_GT(hits, 0) << pattern;
    }
}

TEST(Garbage, patterns_of_shuffled_signs_are_taken_or_refused_with_a_sentence) {
    base::Random random(21);
    constexpr std::string_view kSigns = "ab0-^$.*+?{}()[]|\\dws,:\"1\n";
    int taken = 0;
    for (int i = 0; i < 50'000; ++i) {
        std::string pattern = "^";
        for (auto left = random.below(10); left > 0; --left)
            pattern += kSigns[random.below(kSigns.size())];
        pattern += '$';
        std::size_t work = kMaxPatternWork;
        const auto read = read_pattern(pattern, work);
        if (read) {
            ++taken;
            EXPECT_LE(read->states.size(), kMaxPatternStates);
            for (const auto& state : read->states)
                EXPECT_TRUE(state.ends || !state.ways.empty())
                    << "a text can always go on or end: " << pattern;
        } else {
            EXPECT_GT(read.error().size(), 10U) << pattern;
        }
    }
    EXPECT_GT(taken, 1000);
}

TEST(LiteralTree, HoldsExactlyItsTexts) {
    const std::vector<std::string> texts = {"a",   "ab",   "abc", "abd", "b",
                                            "car", "cart", "cat", "dog"};
    const std::regex form = as_regex(literal_tree(texts));
    for (const std::string& text : texts) EXPECT_TRUE(std::regex_match(text, form)) << text;
    for (const char* no : {"", "c", "ca", "abcd", "do", "dogs", "d"})
        EXPECT_FALSE(std::regex_match(no, form)) << no;
    EXPECT_EQ(widest_branch(texts), 4) << "a, b, c and d";
    EXPECT_EQ(literal_tree(std::vector<std::string>{"\"\xC3\xA4\"", "\"\xC3\xB6\""}),
              "\"\\\"\" (\"\xC3\xA4\\\"\" | \"\xC3\xB6\\\"\")")
        << "no character is cut";
    EXPECT_EQ(widest_branch(std::vector<std::string>{"one"}), 1);
}

}  // namespace
}  // namespace fullstop::schema
