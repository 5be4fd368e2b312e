// One rule a node (n7), with further ones of its own behind a letter (n7t0), and rules for values
// of every schema.
#include "schema/grammar.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <iterator>
#include <utility>

#include "schema/digit_ranges.h"
#include "schema/excluded_names.h"
#include "schema/limits.h"
#include "schema/literal_tree.h"

namespace fullstop::schema {
namespace {

constexpr std::string_view kSharedRules = R"(ws ::= (" " | "\n" [ \t]{0,16})?
char ::= [^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" ([0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2}))
string ::= "\"" char* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?
date ::= [0-9]{4} "-" (("0" [13578] | "1" [02]) "-" day31 | ("0" [469] | "11") "-" day30 | "02-" day28)
day28 ::= "0" [1-9] | "1" [0-9] | "2" [0-8]
day30 ::= "0" [1-9] | [12] [0-9] | "30"
day31 ::= "0" [1-9] | [12] [0-9] | "3" [01]
time ::= clock ":" [0-5] [0-9] ("." [0-9]{1,9})? ("Z" | [-+] clock)
clock ::= ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9]
uuid ::= hex{8} "-" hex{4} "-" hex{4} "-" hex{4} "-" hex{12}
hex ::= [0-9a-fA-F]
)";

/// `item` so many times; nothing if none.
std::string repeated(std::string_view item, std::int64_t least,
                     const std::optional<std::int64_t>& most) {
    if (most && *most == 0) return {};
    if (!most) return least == 0 ? fmt::format("{}*", item) : fmt::format("{}{{{},}}", item, least);
    return fmt::format("{}{{{},{}}}", item, least, *most);
}

class Writer {
public:
    explicit Writer(const JsonSchema& schema) : schema_(schema) {}

    std::string write() {
        out_ = "root ::= n0\n";
        for (id_ = 0; id_ < schema_.nodes.size(); ++id_)
            std::visit([&](const auto& node) { rules(node); }, schema_.nodes[id_]);
        if (any_) write_any();
        return out_ += kSharedRules;
    }

private:
    template <class... T>
    void rule(fmt::format_string<T...> form, T&&... parts) {
        fmt::format_to(std::back_inserter(out_), form, std::forward<T>(parts)...);
        out_ += '\n';
    }

    void rules(const AnyJson&) {
        any_ = true;
        rule("n{} ::= any0", id_);
    }
    void rules(const AnyNumber&) { rule("n{} ::= number", id_); }
    void rules(const WholeNumber& node) {
        rule("n{} ::= {}", id_, digit_ranges(node.low, node.high));
    }
    void rules(const BoundedNumber& node) {
        rule("n{} ::= {}", id_, decimal_ranges(node.low, node.high));
    }
    void rules(const JsonLiterals& node) { rule("n{} ::= {}", id_, literal_tree(node.texts)); }
    void rules(const JsonText& node) {
        switch (node.form) {
            case TextForm::kDate: return rule(R"(n{} ::= "\"" date "\"")", id_);
            case TextForm::kTime: return rule(R"(n{} ::= "\"" time "\"")", id_);
            case TextForm::kDateTime: return rule(R"(n{} ::= "\"" date "T" time "\"")", id_);
            case TextForm::kUuid: return rule(R"(n{} ::= "\"" uuid "\"")", id_);
            case TextForm::kPattern: return pattern(node.pattern);
            case TextForm::kFree:
                return rule(R"(n{} ::= "\"" {} "\"")", id_,
                            repeated("char", node.least, node.most));
        }
    }
    /// n7p3: what may follow in state 3.
    void pattern(const TextPattern& automaton) {
        rule(R"(n{0} ::= "\"" n{0}p0 "\"")", id_);
        for (std::size_t i = 0; i < automaton.states.size(); ++i) {
            const auto& [ends, ways] = automaton.states[i];
            std::string all = ends ? R"("")" : "";
            for (const auto& [character, to] : ways)
                all += fmt::format("{}{} n{}p{}", all.empty() ? "" : " | ", character, id_, to);
            rule("n{}p{} ::= {}", id_, i, all);
        }
    }
    void rules(const Alternatives& node) {
        std::string all;
        for (const SchemaNodeId id : node.nodes)
            all += fmt::format("{}n{}", all.empty() ? "" : " | ", id);
        rule("n{} ::= {}", id_, all);
    }

    void rules(const JsonList& node) {
        if (node.most && *node.most == 0) return rule(R"(n{} ::= "[" ws "]")", id_);
        const std::int64_t further = std::max<std::int64_t>(node.least - 1, 0);
        const auto most_further = node.most.transform([](std::int64_t most) { return most - 1; });
        const std::string items = fmt::format(
            "n{} {} ws", node.item, repeated(fmt::format("n{}m", id_), further, most_further));
        rule(R"(n{}m ::= "," ws n{})", id_, node.item);
        rule(R"(n{} ::= "[" ws {} "]")", id_, node.least == 0 ? "(" + items + ")?" : items);
    }
    void rules(const JsonTuple& node) {
        std::string items;
        for (const SchemaNodeId id : node.items)
            items += fmt::format(R"({}n{} )", items.empty() ? "" : R"("," ws )", id);
        rule(R"(n{} ::= "[" ws {}ws "]")", id_, items);
    }

    /// n7t3: the next member is property 3 or, as far as those are optional, one behind it; n7r3:
    /// so much may follow.
    void rules(const JsonObject& node) {
        const std::size_t count = node.properties.size();
        std::size_t last_required = 0;  // the number of properties up to it
        for (std::size_t i = 0; i < count; ++i)
            if (node.properties[i].required) last_required = i + 1;
        const std::size_t end = count + (node.others ? 1 : 0);
        if (end == 0) return rule(R"(n{} ::= "{{" ws "}}")", id_);
        rule(R"(n{} ::= "{{" ws {} "}}")", id_,
             last_required > 0 ? fmt::format("n{}t0 ws", id_) : fmt::format("(n{}t0 ws)?", id_));
        for (std::size_t i = 0; i < end; ++i) {
            const bool other = i == count;
            const std::string name = other ? fmt::format("n{}k", id_)
                                           : grammar_literal(boost::json::serialize(
                                                 boost::json::value(node.properties[i].name)));
            const std::size_t next = other ? i : i + 1;
            const std::string rest = next < end ? fmt::format(" n{}r{}", id_, next) : "";
            const bool may_miss = !other && !node.properties[i].required && i + 1 < end;
            rule(R"(n{}t{} ::= {} ":" ws n{}{}{})", id_, i, name,
                 other ? *node.others : node.properties[i].value, rest,
                 may_miss ? fmt::format(" | n{}t{}", id_, i + 1) : "");
            const std::string further = fmt::format(R"("," ws n{}t{})", id_, i);
            if (i > 0 || other)
                rule("n{}r{} ::= {}", id_, i, last_required > i ? further : "(" + further + ")?");
        }
        if (node.others) rule("n{}k ::= {}", id_, excluded_names(node.properties));
    }

    /// Level by level, so that what a model opens ends somewhere, and the way back is never long.
    void write_any() {
        constexpr std::string_view kScalars = R"(string | number | "true" | "false" | "null")";
        for (int depth = 0; depth < kMaxFreeJsonDepth; ++depth) {
            rule(
                R"(any{0} ::= {1} | "{{" ws (member{0} ("," ws member{0})* ws)? "}}" | "[" ws (any{2} ("," ws any{2})* ws)? "]")",
                depth, kScalars, depth + 1);
            rule(R"(member{} ::= string ":" ws any{})", depth, depth + 1);
        }
        rule("any{} ::= {}", kMaxFreeJsonDepth, kScalars);
    }

    const JsonSchema& schema_;
    SchemaNodeId id_ = 0;
    bool any_ = false;
    std::string out_;
};

}  // namespace

std::string grammar_of(const JsonSchema& schema) { return Writer(schema).write(); }

std::string json_object_grammar() {
    return grammar_of({.nodes = {JsonObject{.properties = {}, .others = 1}, AnyJson{}}});
}

}  // namespace fullstop::schema
