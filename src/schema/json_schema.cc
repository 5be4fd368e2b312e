// The structure: which kind of schema stands at a place, and which keywords belong to it. Values of
// keywords are read in keywords.cc.
#include "schema/json_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <utility>

#include "schema/limits.h"
#include "schema/reader.h"

namespace fullstop::schema {

namespace json = boost::json;

namespace {

template <class List>
bool is_among(const List& list, std::string_view word) {
    return std::ranges::find(list, word) != std::ranges::end(list);
}

/// Says something about the value to people, or names schemas for $ref: nothing of it limits the
/// value.
constexpr std::array<std::string_view, 13> kRemarks = {
    "title",    "description", "default",  "examples", "example", "deprecated", "discriminator",
    "readOnly", "writeOnly",   "$comment", "$schema",  "$defs",   "definitions"};
bool is_remark(std::string_view key) { return is_among(kRemarks, key) || key.starts_with("x-"); }

/// Which keywords limit values of which type.
struct TypeKeywords {
    std::string_view type;
    std::array<std::string_view, 4> keywords;
};
constexpr std::array<TypeKeywords, 7> kTypes = {
    {{"object", {"properties", "required", "additionalProperties"}},
     {"array", {"items", "prefixItems", "minItems", "maxItems"}},
     {"string", {"minLength", "maxLength", "format", "pattern"}},
     {"integer", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
     {"number", {"minimum", "maximum"}},
     {"boolean", {}},
     {"null", {}}}};
const TypeKeywords* find_type(std::string_view type) {
    const auto found = std::ranges::find(kTypes, type, &TypeKeywords::type);
    return found == kTypes.end() ? nullptr : &*found;
}
bool limits(const TypeKeywords& type, std::string_view key) {
    return !key.empty() && is_among(type.keywords, key);
}

/// Keywords that say what the whole value is; at most one of them, and no type's keywords beside
/// it.
constexpr std::array<std::string_view, 6> kWhole = {"$ref",  "anyOf", "oneOf",
                                                    "allOf", "const", "enum"};

}  // namespace

void SchemaReader::fail(const Place& place, std::string_view what) {
    if (wrong_.empty()) wrong_ = fmt::format("at \"{}\": {}", place.path, what);
}

std::expected<JsonSchema, std::string> SchemaReader::read() {
    add({&root_, ""});
    targets_[&root_] = 0;
    while (!waiting_.empty() && wrong_.empty()) {
        const auto [id, place] = std::move(waiting_.front());
        waiting_.pop_front();
        SchemaNode read = node(place);
        out_.nodes[id] = std::move(read);
    }
    if (!wrong_.empty()) return std::unexpected(std::move(wrong_));
    return std::move(out_);
}

/// Nodes come before what they hold, which check_schema() makes use of.
SchemaNodeId SchemaReader::add(const Place& place) {
    if (out_.nodes.size() >= kMaxSchemaNodes)
        fail(place, fmt::format("the schema has more than {} parts", kMaxSchemaNodes));
    if (!wrong_.empty()) return 0;
    const SchemaNodeId id = out_.nodes.size();
    out_.nodes.emplace_back();
    SchemaNode read = node(place);
    out_.nodes[id] = std::move(read);
    return id;
}

SchemaNodeId SchemaReader::target(const Place& place, std::string_view reference) {
    if (!reference.starts_with('#') || reference.contains('%')) {
        fail(place, fmt::format("$ref \"{}\" is not one into this schema, as \"#/$defs/name\" "
                                "would be; nothing else is fetched",
                                reference));
        return 0;
    }
    json::error_code error;
    const json::value* found = root_.find_pointer(reference.substr(1), error);
    if (found == nullptr) {
        fail(place, fmt::format("$ref \"{}\" leads nowhere", reference));
        return 0;
    }
    if (const auto known = targets_.find(found); known != targets_.end()) return known->second;
    if (out_.nodes.size() >= kMaxSchemaNodes)
        fail(place, fmt::format("the schema has more than {} parts", kMaxSchemaNodes));
    const SchemaNodeId id = out_.nodes.size();
    out_.nodes.emplace_back();
    targets_.emplace(found, id);
    waiting_.emplace_back(id, Place{found, std::string(reference.substr(1))});
    return id;
}

SchemaNode SchemaReader::node(const Place& place) {
    if (place.schema->is_bool()) {
        if (!place.schema->get_bool()) fail(place, "false allows no value");
        return AnyJson{};
    }
    if (!place.schema->is_object()) {
        fail(place, "a schema is an object");
        return AnyJson{};
    }
    const json::object& schema = place.schema->get_object();
    const auto types = types_of(place, schema);
    check_keywords(place, schema, types);
    if (!wrong_.empty()) return AnyJson{};
    for (const std::string_view key : kWhole) {
        if (!schema.contains(key)) continue;
        if (key == "const" || key == "enum") return literals(place, schema, types);
        return alternatives(place, key);
    }
    if (types.empty()) return AnyJson{};
    if (types.size() == 1) return typed(place, types.front());
    Alternatives out;
    for (const std::string_view type : types) {
        if (out_.nodes.size() >= kMaxSchemaNodes) break;  // the next one says so
        const SchemaNodeId id = out_.nodes.size();
        out_.nodes.emplace_back();
        SchemaNode read = typed(place, type);
        out_.nodes[id] = std::move(read);
        out.nodes.push_back(id);
    }
    return out;
}

SchemaNode SchemaReader::typed(const Place& place, std::string_view type) {
    const json::object& schema = place.schema->get_object();
    if (type == "object") return object(place, schema);
    if (type == "array") return list(place, schema);
    if (type == "string") return text(place, schema);
    if (type == "integer") return whole_number(place, schema);
    if (type == "number") return number(place, schema);
    if (type == "boolean") return JsonLiterals{{"false", "true"}};
    return JsonLiterals{{"null"}};
}

/// As the schema says, or else what its keywords say. None: any value.
std::vector<std::string_view> SchemaReader::types_of(const Place& place,
                                                     const json::object& schema) {
    std::vector<std::string_view> types;
    if (const json::value* type = schema.if_contains("type")) {
        json::array one;
        if (!type->is_array()) one.push_back(*type);
        for (const json::value& each : type->is_array() ? type->get_array() : one) {
            const TypeKeywords* known = each.is_string() ? find_type(each.get_string()) : nullptr;
            if (known == nullptr || is_among(types, known->type))
                fail(place,
                     "type is one or several of object, array, string, integer, number, boolean "
                     "and null");
            else
                types.push_back(known->type);
        }
        if (types.empty()) fail(place, "type names nothing");
        return types;
    }
    for (const TypeKeywords& type : kTypes)
        if (std::ranges::any_of(schema,
                                [&](const auto& member) { return limits(type, member.key()); }))
            types.push_back(type.type);
    if (types.size() > 1 || is_among(types, "integer"))
        fail(place, "type is missing, and the other keywords do not say which one is meant");
    return types;
}

void SchemaReader::check_keywords(const Place& place, const json::object& schema,
                                  const std::vector<std::string_view>& types) {
    std::vector<std::string_view> whole, of_types;
    for (const auto& member : schema) {
        const std::string_view key = member.key();
        if (key == "type" || is_remark(key)) continue;
        if (is_among(kWhole, key)) {
            whole.push_back(key);
        } else if (std::ranges::any_of(types, [&](std::string_view type) {
                       return limits(*find_type(type), key);
                   })) {
            of_types.push_back(key);
        } else {
            std::vector<std::string_view> owners;
            for (const TypeKeywords& type : kTypes)
                if (limits(type, key)) owners.push_back(type.type);
            return fail(place, owners.empty()
                                   ? fmt::format("{} is not honoured by this server", key)
                                   : fmt::format("{} is honoured for type {} only", key,
                                                 fmt::join(owners, " and ")));
        }
    }
    if (whole.size() > 1)
        return fail(place, fmt::format("{} together are not honoured", fmt::join(whole, " and ")));
    if (whole.empty()) return;
    if (!of_types.empty())
        return fail(place,
                    fmt::format("{} beside {} is not honoured", of_types.front(), whole.front()));
    const bool values = whole.front() == "const" || whole.front() == "enum";
    if (!values && schema.contains("type"))
        fail(place, fmt::format("type beside {} is not honoured: say it in the alternatives",
                                whole.front()));
}

std::expected<JsonSchema, std::string> read_schema(const json::value& schema) {
    if (const std::size_t size = json::serialize(schema).size(); size > kMaxSchemaBytes)
        return std::unexpected(
            fmt::format("the schema has {} bytes; at most {} are taken", size, kMaxSchemaBytes));
    auto read = SchemaReader(schema).read();
    if (read)
        if (std::string wrong = check_schema(*read); !wrong.empty())
            return std::unexpected(std::move(wrong));
    return read;
}

}  // namespace fullstop::schema
