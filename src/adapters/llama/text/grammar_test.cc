// Response formats with the real vocabulary and the real model: what comes fulfils the schema,
// alone and in company.
#include "adapters/llama/text/grammar.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "adapters/llama/backend.h"
#include "base/random.h"
#include "base/utf8.h"
#include "engine/engine.h"
#include "engine/limits.h"
#include "schema/grammar.h"
#include "tests/support/source_dir.h"

namespace fullstop::adapters::llama {
namespace {

namespace json = boost::json;
using answer::Cause;
using base::Tokens;
using engine::SequenceId;
using engine::TokenId;

const std::filesystem::path kModel =
    tests::source_dir() / ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";

/// JSON Schema as its specification reads, of the keywords that are honoured; an eye of its own,
/// which knows no grammar.
bool fulfils(const json::value& root, const json::value& schema, const json::value& value);

bool is_of(const json::value& value, std::string_view type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "null") return value.is_null();
    if (type == "boolean") return value.is_bool();
    return type == "number" ? value.is_number() : value.is_int64() || value.is_uint64();
}

/// "2024-02-28T23:59:59.5+01:30": a day of the calendar and a time of the clock.
bool is_date_time(const std::string& text) {
    static const std::regex kForm(
        R"((\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[-+]([01]\d|2[0-3]):[0-5]\d))");
    std::smatch parts;
    if (!std::regex_match(text, parts, kForm)) return false;
    const auto number = [&](std::size_t part) { return std::stoi(parts[part].str()); };
    return (std::chrono::year(number(1)) / number(2) / number(3)).ok();
}

std::int64_t characters(std::string_view text) {
    std::int64_t count = 0;
    for (; !text.empty(); ++count) text.remove_prefix(base::front_character(text).second);
    return count;
}

bool object_fulfils(const json::value& root, const json::object& schema,
                    const json::object& value) {
    const auto* properties = schema.if_contains("properties");
    for (const auto& member : value) {
        const auto* described =
            properties == nullptr ? nullptr : properties->get_object().if_contains(member.key());
        const auto* others = schema.if_contains("additionalProperties");
        if (described != nullptr && !fulfils(root, *described, member.value())) return false;
        if (described == nullptr && others != nullptr && !fulfils(root, *others, member.value()))
            return false;
    }
    if (const auto* required = schema.if_contains("required"))
        for (const auto& name : required->get_array())
            if (!value.contains(name.get_string())) return false;
    return true;
}

bool array_fulfils(const json::value& root, const json::object& schema, const json::array& value) {
    const auto count = std::ssize(value);
    if (schema.contains("minItems") && count < schema.at("minItems").as_int64()) return false;
    if (schema.contains("maxItems") && count > schema.at("maxItems").as_int64()) return false;
    const auto* first = schema.if_contains("prefixItems");
    for (std::size_t i = 0; i < value.size(); ++i) {
        const json::value* of = first != nullptr && i < first->get_array().size()
                                    ? &first->get_array()[i]
                                    : schema.if_contains("items");
        if (of != nullptr && !fulfils(root, *of, value[i])) return false;
    }
    return true;
}

bool fulfils(const json::value& root, const json::value& schema, const json::value& value) {
    if (schema.is_bool()) return schema.get_bool();
    const json::object& all = schema.get_object();
    if (const auto* ref = all.if_contains("$ref"))
        return fulfils(root, root.at_pointer(std::string_view(ref->get_string()).substr(1)), value);
    for (const char* key : {"anyOf", "oneOf"})
        if (const auto* of = all.if_contains(key))
            return std::ranges::any_of(of->get_array(),
                                       [&](const auto& one) { return fulfils(root, one, value); });
    if (const auto* same = all.if_contains("const"))
        if (value != *same) return false;
    if (const auto* of = all.if_contains("enum"))
        if (std::ranges::find(of->get_array(), value) == of->get_array().end()) return false;
    if (const auto* type = all.if_contains("type")) {
        const json::array types = type->is_array() ? type->get_array() : json::array{*type};
        if (std::ranges::none_of(types,
                                 [&](const auto& each) { return is_of(value, each.get_string()); }))
            return false;
    }
    if (value.is_string()) {
        if (all.contains("pattern")) {  // of bytes, so that characters beyond ASCII count as one by
                                        // the form of UTF-8 only
            std::string text(value.get_string());
            if (std::ranges::all_of(text,
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; }) &&
                !std::regex_match(text, std::regex(std::string(all.at("pattern").as_string()))))
                return false;
        }
        if (all.contains("format") && !is_date_time(std::string(value.get_string()))) return false;
        const auto length = characters(value.get_string());
        if (all.contains("minLength") && length < all.at("minLength").as_int64()) return false;
        if (all.contains("maxLength") && length > all.at("maxLength").as_int64()) return false;
    }
    if (value.is_number()) {
        const auto number = value.to_number<double>();
        if (all.contains("minimum") && number < all.at("minimum").to_number<double>()) return false;
        if (all.contains("maximum") && number > all.at("maximum").to_number<double>()) return false;
    }
    if (value.is_int64()) {
        if (all.contains("exclusiveMaximum") &&
            value.get_int64() >= all.at("exclusiveMaximum").as_int64())
            return false;
    }
    if (value.is_array()) return array_fulfils(root, all, value.get_array());
    return !value.is_object() || object_fulfils(root, all, value.get_object());
}

std::string grammar_for(std::string_view schema) {
    const auto read = schema::read_schema(json::parse(schema));
    EXPECT_TRUE(read.has_value()) << (read ? "" : read.error()) << "\n" << schema;
    return read ? schema::grammar_of(*read) : "";
}

const std::vector<const char*> kSchemas = {
    R"({})",
    R"({"type":"object"})",
    R"({"type":"string","minLength":2,"maxLength":4})",
    R"({"type":"string","format":"date-time"})",
    R"({"type":"string","pattern":"^[A-Z]{2}-\\d{3,4}(?: (north|south)|!)?$"})",
    R"({"type":"string","pattern":"^.{1,3}[^a-z\\]\"]+(\\w|\\\\)$"})",
    R"({"type":"string","pattern":"^(\\S|\"|\u00e4){1,4}[\\].^-]?$"})",
    R"({"type":"integer","minimum":-17,"exclusiveMaximum":1234})",
    R"({"type":"number"})",
    R"({"type":"number","minimum":-1,"maximum":1})",
    R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"null"}},"required":["k","n"],"additionalProperties":false},)"
    R"({"type":"object","properties":{"k":{"const":"b"},"n":{"type":"boolean"}},"required":["k","n"],"additionalProperties":false}]})",
    R"({"enum":["red","reddish","green",12,1,null,{"a":["x"]},"\u00e4\"\\\n"]})",
    R"({"type":["string","null","boolean"],"maxLength":3})",
    R"({"type":"array","items":{"type":"integer","minimum":0},"minItems":2,"maxItems":4})",
    R"({"type":"array","prefixItems":[{"type":"boolean"},{"const":"<|im_start|>"}],"items":false})",
    R"({"type":"object","properties":{"a":{"type":"string","maxLength":3},"b":{"type":"boolean"},"c":{"type":"null"}},"required":["b"],"additionalProperties":false})",
    R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"boolean"},"c":{"type":"null"}},"additionalProperties":false})",
    R"({"type":"object","properties":{"a":{"const":1},"ab":{"const":2},"\u00e9\"]^-":{"const":3}},"required":["ab"],"additionalProperties":{"type":"string","maxLength":2}})",
    R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"boolean"},"maxItems":2}})",
    R"({"type":"object","properties":{"v":{"type":"integer","minimum":0},"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["v","next"],"additionalProperties":false})",
    R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/n"},"maxItems":2}},"additionalProperties":false}}})",
};

/// A walk along a grammar that takes any way: few tokens, so that brackets and quotes come often,
/// with numbers from a seed.
class Walk {
public:
    Walk(engine::Backend& backend, std::uint64_t seed) : backend_(backend), random_(seed) {
        const auto tokens = backend.facts().vocabulary;
        row_.assign(static_cast<std::size_t>(tokens), -std::numeric_limits<float>::infinity());
        for (TokenId token = 0; token < tokens; ++token)
            if (backend.is_end(token) || (backend.piece(token).size() <= 1 && token < 600) ||
                (token < 60'000 && random_.chance(0.004)))
                open_.push_back(token);
    }
    /// The text, or nothing when it did not end.
    std::optional<std::string> text(engine::TokenConstraint& constraint) {
        engine::Sampler sampler({.seed = random_.next()});
        std::string text;
        for (int i = 0; i < 400; ++i) {
            for (const TokenId token : open_) {
                const std::string piece = backend_.piece(token);
                const bool closes = piece == "\"" || piece == "]" || piece == "}" ||
                                    piece == "null" || backend_.is_end(token);
                row_[static_cast<std::size_t>(token)] =
                    static_cast<float>(random_.normal() * 2 + (closes ? 5 : 0));
            }
            const auto token = sampler.pick(row_, &constraint);
            if (!token) return ADD_FAILURE() << "nothing may follow " << text, std::nullopt;
            if (backend_.is_end(*token)) return text;
            text += backend_.piece(*token);
            constraint.accept(*token);
        }
        return std::nullopt;
    }

private:
    engine::Backend& backend_;
    base::Random random_;
    std::vector<TokenId> open_;
    std::vector<float> row_;
};

TEST(Grammar, EveryWayThroughItGivesAValueThatFulfilsTheSchema) {
    auto backend = load({.model = kModel, .max_sequences = 1}).value();
    for (const char* schema : kSchemas) {
        const std::string grammar = grammar_for(schema);
        const json::value parsed = json::parse(schema);
        std::set<std::string> seen;
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
            auto constraint = backend->constrain(grammar);
            ASSERT_TRUE(constraint.has_value()) << grammar;
            const auto text = Walk(*backend, seed).text(**constraint);
            if (!text) continue;
            json::error_code error;
            const json::value value = json::parse(*text, error);
            EXPECT_FALSE(error) << schema << ": " << *text;
            EXPECT_TRUE(!error && fulfils(parsed, parsed, value)) << schema << ": " << *text;
            seen.insert(*text);
        }
        EXPECT_GE(seen.size(), 2U) << schema;
    }
}

/// A schema made of smaller ones; those that are refused are drawn again.
std::string composed(base::Random& random, int depth) {
    constexpr std::size_t kLeaves = 16;  // the first of kSchemas, which refer to nothing
    const auto part = [&] { return composed(random, depth - 1); };
    switch (depth == 0 ? 0 : random.below(6)) {
        case 1:
            return fmt::format(R"({{"type":"array","items":{},"maxItems":{}}})", part(),
                               1 + random.below(3));
        case 2:
            return fmt::format(
                R"({{"type":"object","properties":{{"x":{},"y":{}}},"required":["x"],"additionalProperties":false}})",
                part(), part());
        case 3:
            return fmt::format(
                R"({{"type":"object","properties":{{"y":{},"xy":{}}},"additionalProperties":{}}})",
                part(), part(), part());
        case 4: return fmt::format(R"({{"anyOf":[{},{}]}})", part(), part());
        case 5:
            return fmt::format(R"({{"type":"array","prefixItems":[{},{}],"items":false}})", part(),
                               part());
        default: return kSchemas[random.below(kLeaves)];
    }
}

TEST(Grammar, LibllamaTakesWhateverIsComposedAndItsAnswersFulfilIt) {
    auto backend = load({.model = kModel, .max_sequences = 1}).value();
    base::Random random(22);
    Walk walk(*backend, 23);
    int answers = 0;
    for (int i = 0; i < 60; ++i) {
        const json::value schema = json::parse(composed(random, 3));
        const auto read = schema::read_schema(schema);
        if (!read) continue;
        auto constraint = backend->constrain(schema::grammar_of(*read));
        ASSERT_TRUE(constraint.has_value()) << schema;
        const auto text = walk.text(**constraint);
        if (!text) continue;
        ++answers;
        json::error_code error;
        const json::value value = json::parse(*text, error);
        EXPECT_TRUE(!error && fulfils(schema, schema, value)) << schema << ": " << *text;
    }
    EXPECT_GT(answers, 20);
}

TEST(Grammar, LibllamaTakesEveryPatternThatIsRead) {
    auto backend = load({.model = kModel, .max_sequences = 1}).value();
    base::Random random(24);
    constexpr std::string_view kSigns = "ab0-^.*+?{}()[]|\\dw,:\"1";
    int taken = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::string pattern = "^";
        for (auto left = 2 + random.below(12); left > 0; --left)
            pattern += kSigns[random.below(kSigns.size())];
        const auto read =
            schema::read_schema(json::object{{"type", "string"}, {"pattern", pattern + "$"}});
        if (!read) continue;
        ++taken;
        EXPECT_TRUE(backend->constrain(schema::grammar_of(*read)).has_value()) << pattern;
    }
    EXPECT_GT(taken, 200);
}

TEST(Grammar, TokensMakeCharactersOrAreRefused) {
    TokenBytes bytes;
    const std::vector<std::string> pieces = {"a",
                                             "",
                                             std::string("a\0b", 3),
                                             "\xC3",
                                             "\xA4",
                                             "\xA4 b",
                                             "x\xF0\x9F",
                                             "\xE0",
                                             "\xED",
                                             "\xA0",
                                             "\x80",
                                             "\xC3\"",
                                             "\xFF",
                                             "\xA4\xA4\xA4\xA4"};
    for (const std::string& piece : pieces) bytes.add(piece);
    const auto fits = [&](std::string_view piece, std::string_view pending) {
        return bytes.fits(static_cast<TokenId>(std::ranges::find(pieces, piece) - pieces.begin()),
                          pending);
    };
    for (const char* piece : {"a", "\xC3", "x\xF0\x9F", "\xE0"})
        EXPECT_TRUE(fits(piece, "")) << piece;
    for (const std::string& piece :
         {pieces[1], pieces[2], pieces[4], pieces[5], pieces[11], pieces[12], pieces[13]})
        EXPECT_FALSE(fits(piece, "")) << piece;
    EXPECT_TRUE(fits("\xA4", "\xC3") && fits("\xA4 b", "\xC3") && fits("\xA0", "\xE0") &&
                fits("\x80", "\xED"));
    EXPECT_FALSE(fits("a", "\xC3") || fits("\xC3", "\xC3")) << "in the middle of a character";
    EXPECT_FALSE(fits("\x80", "\xE0")) << "longer than the character needs";
    EXPECT_FALSE(fits("\xA0", "\xED")) << "half of a surrogate pair";
    EXPECT_EQ(bytes.pending_after(6, ""), "\xF0\x9F");
    EXPECT_EQ(bytes.pending_after(5, "\xC3"), "");
}

TEST(Grammar, WhatLibllamaDoesNotTakeIsAnError) {
    auto backend = load({.model = kModel, .max_sequences = 1}).value();
    for (const char* grammar :
         {"root ::= nowhere", "root ::= (", "other ::= \"a\"", "root ::= root \"a\" | \"b\""})
        EXPECT_FALSE(backend->constrain(grammar).has_value()) << grammar;
}

/// The longest that the engine's thread could be held up by what the limits allow, on a machine
/// that does other things too.
TEST(Grammar, TheLargestSchemasThatAreTakenHoldNobodyUpForLong) {
    auto backend = load({.model = kModel, .max_sequences = 1}).value();
    const auto list = [](int count, const std::function<std::string(int)>& each) {
        std::string all;
        for (int i = 0; i < count; ++i) all += (i == 0 ? "" : ",") + each(i);
        return all;
    };
    const auto repeat = [](std::string_view text, int times) {
        std::string all;
        while (times-- > 0) all += text;
        return all;
    };
    const auto named = [](std::string_view value) {
        return [value](int i) { return fmt::format(R"("p{}":{})", i, value); };
    };
    const std::vector<std::pair<const char*, std::string>> all = {
        {"4900 required properties",
         fmt::format(R"({{"type":"object","properties":{{{}}},"required":[{}]}})",
                     list(4900, named("{}")),
                     list(4900, [](int i) { return fmt::format("\"p{}\"", i); }))},
        {"126 optional properties", fmt::format(R"({{"type":"object","properties":{{{}}}}})",
                                                list(126, named(R"({"type":"string"})")))},
        {"1000 values",
         fmt::format(R"({{"enum":[{}]}})",
                     list(1000, [](int i) { return fmt::format("\"value {}\"", i * 7919); }))},
        {"16 texts at once",
         fmt::format(R"({{"anyOf":[{}]}})",
                     list(16,
                          [](int i) {
                              return fmt::format(R"({{"type":"string","minLength":{}}})", i * 10);
                          }))},
        {"5 free values at once", fmt::format(R"({{"type":"array","items":{{"anyOf":[{}]}}}})",
                                              list(5, [](int) { return "{}"; }))},
        {"an ambiguous pattern",
         fmt::format(R"({{"type":"string","pattern":"^{}$"}})", repeat("(a*|b*)", 64))},
        {"another", fmt::format(R"({{"type":"string","pattern":"^{}$"}})", repeat("a?", 128))},
        {"patterns of 256 states",
         fmt::format(R"({{"type":"object","properties":{{{0}}},"required":["p0","p1"]}})",
                     list(2, named(R"({"type":"string","pattern":"^[a-z0-9]*a[a-z0-9]{7}$"})")))},
        {"a list of 16 texts alike",
         fmt::format(
             R"({{"type":"array","items":{{"anyOf":[{}]}}}})",
             list(16,
                  [](int i) { return fmt::format(R"({{"type":"string","maxLength":{}}})", i); }))},
        {"a list of 16 lists alike",
         fmt::format(R"({{"type":"array","items":{{"anyOf":[{}]}}}})",
                     list(16,
                          [](int i) {
                              return fmt::format(
                                  R"({{"type":"array","items":{{"const":"a"}},"maxItems":{}}})", i);
                          }))},
        {"10000 repetitions",
         fmt::format(
             R"({{"type":"object","properties":{{{0}}},"required":["p0","p1","p2","p3","p4"]}})",
             list(5, named(R"({"type":"string","minLength":1,"maxLength":2000})")))},
    };
    const auto ms_since = [](auto begin) {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count();
    };
    std::vector<TokenId> every(static_cast<std::size_t>(backend->facts().vocabulary));
    for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<TokenId>(i);
    for (const auto& [name, schema] : all) {
        auto begin = std::chrono::steady_clock::now();
        const std::string grammar = grammar_for(schema);
        const double read = ms_since(begin);
        begin = std::chrono::steady_clock::now();
        auto constraint = backend->constrain(grammar);
        const double made = ms_since(begin);
        ASSERT_TRUE(constraint.has_value()) << name;
        double longest = 0;
        const TokenId letter = backend->tokenize("a").tokens.back();  // what the patterns wait for
        std::vector<TokenId> likely = {letter};
        for (const char* text : {"\",\"", "],[", "[", "\"", ",", "]"})
            likely.push_back(backend->tokenize(text).tokens.back());
        for (int i = 0; i < 40; ++i) {
            std::vector<TokenId> allowed = every;
            begin = std::chrono::steady_clock::now();
            (*constraint)->keep_allowed(allowed);
            longest = std::max(longest, ms_since(begin));
            ASSERT_FALSE(allowed.empty()) << name;
            const auto wanted = std::ranges::find_if(
                likely, [&](TokenId token) { return std::ranges::binary_search(allowed, token); });
            const TokenId next = wanted != likely.end() && (i % 3 != 0 || *wanted != letter)
                                     ? *wanted
                                     : allowed[allowed.size() / 2];
            if (backend->is_end(next)) break;
            (*constraint)->accept(next);
        }
        fmt::print(
            "{:>26}: read in {:.1f} ms, grammar of {} bytes made in {:.1f} ms, the whole "
            "vocabulary asked about in {:.1f} ms at most\n",
            name, read, grammar.size(), made, longest);
        EXPECT_LT(read, 2000) << name;
        EXPECT_LT(made, 2000) << name;
        EXPECT_LT(longest, 3000) << name;
    }
}

// With the model
// -------------------------------------------------------------------------------------------------

/// Answers to one question, which all have to be this.
constexpr const char* kPet =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"type":"integer","minimum":0,"maximum":30},)"
    R"("kind":{"enum":["cat","dog","fox"]}},"required":["name","age","kind"],"additionalProperties":false})";
const std::vector<answer::Message> kQuestion = {{"user", "A pet as JSON: name, age, kind."}};

class Pets {
public:
    Pets(Tokens pool, const engine::EngineOptions& how)
        : backend_(load({.model = kModel,
                         .layout = KvLayout::kUnified,
                         .kv_tokens = pool,
                         .max_sequences = 8})
                       .value()),
          engine_(*backend_, how) {}

    void ask(SequenceId id, bool bound, engine::Sampling sampling, std::int64_t max_tokens,
             engine::Priority priority = engine::Priority::kNormal) {
        sampling.seed = id;
        engine_.submit(now_,
                       {.id = id,
                        .prompt = kQuestion,
                        .sampling = std::move(sampling),
                        .max_tokens = Tokens{max_tokens},
                        .priority = priority,
                        .grammar = bound ? std::optional(grammar_for(kPet)) : std::nullopt,
                        .client = one_client ? "" : fmt::format("{}", id)},
                       events_);
    }
    void run(int steps = 1'000'000) {
        while (steps-- > 0 && engine_.plan(now_ += std::chrono::milliseconds(1), events_)) {
            engine_.compute();
            engine_.commit(now_, events_);
        }
        for (const auto& event : std::exchange(events_, {})) {
            if (const auto* produced = std::get_if<engine::Produced>(&event))
                texts[produced->id] += produced->text;
            if (const auto* ended = std::get_if<engine::Ended>(&event))
                texts[ended->id] += ended->text, ends[ended->id] = ended->end;
            EXPECT_FALSE(std::holds_alternative<engine::Refused>(event));
        }
    }
    std::map<SequenceId, std::string> texts;
    std::map<SequenceId, engine::AnswerEnd> ends;
    bool one_client = false;  ///< whose prompts are computed once

private:
    std::unique_ptr<engine::Backend> backend_;
    engine::Engine engine_;
    base::Instant now_{};
    engine::EngineEvents events_;
};

void expect_a_pet(const std::string& text) {
    const json::value schema = json::parse(kPet);
    json::error_code error;
    const json::value value = json::parse(text, error);
    EXPECT_FALSE(error) << text;
    EXPECT_TRUE(!error && fulfils(schema, schema, value)) << text;
}

TEST(RealModelGrammar, TwentySeedsGiveTwentyAnswersThatFulfilTheSchema) {
    Pets pets(Tokens{2048}, {});
    pets.one_client = true;
    std::set<std::string> seen;
    for (SequenceId id = 1; id <= 20; ++id)
        pets.ask(id, true,
                 id == 1       ? engine::Sampling{.temperature = 0}
                 : id % 3 == 0 ? engine::Sampling{.top_p = 0.9, .top_k = 40}
                               : engine::Sampling{.frequency_penalty = 0.1},
                 100);
    pets.run();
    for (SequenceId id = 1; id <= 20; ++id) {
        EXPECT_EQ(pets.ends[id].cause, Cause::kNaturalEnd) << pets.texts[id];
        expect_a_pet(pets.texts[id]);
        seen.insert(pets.texts[id]);
    }
    EXPECT_GT(seen.size(), 15U);
}

/// Two that are bound lose their places in a small pool to two that are not, by copy or to be
/// computed again.
TEST(RealModelGrammar, TheTextIsTheSameAloneInCompanyAndAfterAPause) {
    const auto ask = [](Pets& pets, SequenceId id) {
        pets.ask(id, id < 3, {.temperature = 0.9}, id < 3 ? 40 : 28,
                 id < 3 ? engine::Priority::kBatch : engine::Priority::kInteractive);
    };
    std::map<SequenceId, std::string> alone;
    for (const base::Bytes host : {engine::kDefaultHostMemory, base::Bytes{0}}) {
        const engine::EngineOptions how{.admission = engine::AdmissionMode::kEager,
                                        .host_memory = host};
        if (alone.empty()) {
            Pets one(Tokens{256}, how);
            for (SequenceId id = 1; id <= 4; ++id) ask(one, id), one.run();
            alone = one.texts;
        }
        Pets many(Tokens{256}, how);
        for (SequenceId id = 1; id <= 2; ++id) ask(many, id);
        many.run(14);
        for (SequenceId id = 3; id <= 4; ++id) ask(many, id);
        many.run();
        EXPECT_EQ(many.texts, alone);
        const auto pauses = [&](SequenceId id) {
            return host.count > 0 ? many.ends[id].numbers.swaps : many.ends[id].numbers.recomputes;
        };
        EXPECT_GT(pauses(1) + pauses(2), 0);
        for (SequenceId id = 1; id <= 2; ++id) expect_a_pet(many.texts[id]);
    }
}

}  // namespace
}  // namespace fullstop::adapters::llama
