// Three facts about each node, from those of the nodes it holds: whether a value of it can ever
// end, what its text may begin with, and how many beginnings have to be followed at once.
// References make cycles, so the facts are computed again until none changes. They only grow, and a
// node that takes itself in among alternatives that begin alike grows without end: that is how
// grammars are found that libllama could not follow in bounded time, and those that are
// left-recursive.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string_view>

#include "schema/json_schema.h"
#include "schema/limits.h"
#include "schema/literal_tree.h"

namespace fullstop::schema {
namespace {

/// Passes over all nodes until nothing changes. Nodes are looked at behind those they hold, so a
/// pass settles all but cycles; a cycle of references settles in a few more.
constexpr int kMostPasses = 50;

/// First characters of JSON texts, as a set.
enum First : std::uint8_t {
    kBrace = 1,
    kBracket = 2,
    kQuote = 4,
    kDigit = 8,
    kTrue = 16,
    kFalse = 32,
    kNull = 64,
    kAnything = 127
};

struct NodeFacts {
    bool ends = false;
    std::uint8_t first = 0;
    std::int64_t branches = 0;
    bool operator==(const NodeFacts&) const = default;
};
using AllFacts = std::vector<NodeFacts>;

std::uint8_t first_of(std::string_view text) {
    switch (text.front()) {
        case '{': return kBrace;
        case '[': return kBracket;
        case '"': return kQuote;
        case 't': return kTrue;
        case 'f': return kFalse;
        case 'n': return kNull;
        default: return kDigit;
    }
}

bool overlap(const Alternatives& node, const AllFacts& facts) {
    unsigned all = 0;
    int sum = 0;
    for (const SchemaNodeId id : node.nodes)
        all |= facts[id].first, sum += std::popcount(facts[id].first);
    return sum > std::popcount(all);
}

/// Optional properties that may all come next: those between two required ones, and the one behind
/// them.
std::int64_t longest_choice(const JsonObject& node) {
    std::int64_t longest = 0, run = 1;
    for (const auto& property : node.properties) {
        longest = std::max(longest, run);
        run = property.required ? 1 : run + 1;
    }
    return std::max(longest, run);
}

/// Of a list, tuple or object: white space, a comma or the closing bracket may come at once.
constexpr std::int64_t kBranchesOfBrackets = 4;

NodeFacts facts_of(const AnyJson&, const AllFacts&) { return {true, kAnything, 12}; }
NodeFacts facts_of(const AnyNumber&, const AllFacts&) { return {true, kDigit, 6}; }
NodeFacts facts_of(const WholeNumber&, const AllFacts&) { return {true, kDigit, 8}; }
NodeFacts facts_of(const BoundedNumber&, const AllFacts&) { return {true, kDigit, 16}; }
NodeFacts facts_of(const JsonText& node, const AllFacts&) {
    return {true, kQuote, std::max<std::int64_t>(4, node.pattern.widest)};
}
NodeFacts facts_of(const JsonLiterals& node, const AllFacts&) {
    std::uint8_t first = 0;
    for (const std::string& text : node.texts) first |= first_of(text);
    return {true, first, widest_branch(node.texts)};
}
NodeFacts facts_of(const JsonList& node, const AllFacts& facts) {
    const NodeFacts& item = facts[node.item];
    return {node.least == 0 || item.ends, kBracket, std::max(kBranchesOfBrackets, item.branches)};
}
NodeFacts facts_of(const JsonTuple& node, const AllFacts& facts) {
    NodeFacts out{true, kBracket, kBranchesOfBrackets};
    for (const SchemaNodeId id : node.items)
        out.ends = out.ends && facts[id].ends,
        out.branches = std::max(out.branches, facts[id].branches);
    return out;
}
NodeFacts facts_of(const JsonObject& node, const AllFacts& facts) {
    NodeFacts out{true, kBrace, std::max(kBranchesOfBrackets, longest_choice(node))};
    for (const auto& property : node.properties) {
        if (property.required) out.ends = out.ends && facts[property.value].ends;
        out.branches = std::max(out.branches, facts[property.value].branches);
    }
    // Another name may differ from each of the others at the same character.
    if (node.others)
        out.branches = std::max({out.branches, facts[*node.others].branches,
                                 static_cast<std::int64_t>(node.properties.size()) + 1});
    return out;
}
NodeFacts facts_of(const Alternatives& node, const AllFacts& facts) {
    NodeFacts out;
    const bool together = overlap(node, facts);
    for (const SchemaNodeId id : node.nodes) {
        out.ends = out.ends || facts[id].ends;
        out.first |= facts[id].first;
        // Alternatives that begin alike count twice: in a list each of them may be followed by
        // each.
        out.branches = together ? out.branches + 2 * facts[id].branches
                                : std::max(out.branches, facts[id].branches);
    }
    return out;
}

/// What a reference refers to.
SchemaNodeId behind(const JsonSchema& schema, SchemaNodeId id) {
    for (std::size_t steps = 0; steps < schema.nodes.size(); ++steps) {  // a cycle is another error
        const auto* reference = std::get_if<Alternatives>(&schema.nodes[id]);
        if (reference == nullptr || reference->nodes.size() != 1) break;
        id = reference->nodes.front();
    }
    return id;
}

/// The values of a required property of fixed ones; null: it is not required, or not fixed.
const JsonLiterals* tag_values(const JsonSchema& schema, const JsonObject& object,
                               std::string_view name) {
    const auto found = std::ranges::find(object.properties, name, &JsonObject::Property::name);
    if (found == object.properties.end() || !found->required) return nullptr;
    return std::get_if<JsonLiterals>(&schema.nodes[behind(schema, found->value)]);
}

/// All alternatives are objects that differ in the fixed value of the property `name`.
bool told_apart_by(const JsonSchema& schema, const Alternatives& node, std::string_view name) {
    std::set<std::string_view> seen;
    for (const SchemaNodeId id : node.nodes) {
        const auto* object = std::get_if<JsonObject>(&schema.nodes[behind(schema, id)]);
        const JsonLiterals* values =
            object == nullptr ? nullptr : tag_values(schema, *object, name);
        if (values == nullptr) return false;
        for (const std::string& text : values->texts)
            if (!seen.insert(text).second) return false;
    }
    return true;
}

/// No value fulfils two of them.
bool exclude_each_other(const JsonSchema& schema, const Alternatives& node, const AllFacts& facts) {
    if (!overlap(node, facts)) return true;
    const auto* first = std::get_if<JsonObject>(&schema.nodes[behind(schema, node.nodes.front())]);
    return first != nullptr && std::ranges::any_of(first->properties, [&](const auto& property) {
               return told_apart_by(schema, node, property.name);
           });
}

/// False: they still changed after the last pass.
bool settle(const JsonSchema& schema, AllFacts& facts) {
    for (int pass = 0; pass < kMostPasses; ++pass) {
        bool changed = false;
        for (std::size_t id = schema.nodes.size(); id-- > 0;) {
            NodeFacts now = std::visit([&](const auto& node) { return facts_of(node, facts); },
                                       schema.nodes[id]);
            now.branches = std::min(now.branches, kMaxSchemaBranches + 1);
            changed = changed || now != facts[id];
            facts[id] = now;
        }
        if (!changed) return true;
    }
    return false;
}

}  // namespace

std::string check_schema(const JsonSchema& schema) {
    AllFacts facts(schema.nodes.size());
    const bool settled = settle(schema, facts);
    for (std::size_t id = 0; id < schema.nodes.size(); ++id) {
        const auto* alternatives = std::get_if<Alternatives>(&schema.nodes[id]);
        if (alternatives != nullptr && alternatives->exclusive &&
            !exclude_each_other(schema, *alternatives, facts))
            return "oneOf is honoured where the alternatives are of different types, or objects "
                   "that a required property of different const or enum tells "
                   "apart; "
                   "anyOf allows the others";
    }
    const std::int64_t branches = std::ranges::max(facts, {}, &NodeFacts::branches).branches;
    if (!settled || branches > kMaxSchemaBranches)
        return fmt::format(
            "too many optional properties in a row, or alternatives that begin alike: more than {} "
            "beginnings would have to be followed at once; "
            "make properties required, or alternatives of different types",
            kMaxSchemaBranches);
    if (!std::ranges::all_of(facts, &NodeFacts::ends))
        return "no value can fulfil a part of it: what that part requires holds itself without end";
    return {};
}

}  // namespace fullstop::schema
