// The part of JSON Schema (2020-12) that an answer can be held to while it is written: types,
// properties, items, enum, const, anyOf, $ref within the document, lengths and patterns of strings,
// lengths of lists, numbers between bounds.
//
// A keyword that could not be held to is an error that names it and its place, never ignored:
// whoever sends a schema relies on all of it. The schema becomes a flat list of nodes; everything
// that a later stage has to do with it takes a time linear in that list, whatever was sent
// (limits.h).
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schema/pattern/text_pattern.h"

namespace fullstop::schema {

/// Index into JsonSchema::nodes.
using SchemaNodeId = std::size_t;

struct AnyJson {};
struct AnyNumber {};
struct WholeNumber {
    std::int64_t low = 0, high = 0;  ///< both included
};
/// Between whole numbers, which are included.
struct BoundedNumber {
    std::int64_t low = 0, high = 0;
};
enum class TextForm { kFree, kDate, kTime, kDateTime, kUuid, kPattern };
struct JsonText {
    std::int64_t least = 0;  ///< characters
    std::optional<std::int64_t> most{};
    TextForm form = TextForm::kFree;
    TextPattern pattern{};
};
struct JsonList {
    SchemaNodeId item = 0;
    std::int64_t least = 0;
    std::optional<std::int64_t> most{};
};
/// As many items as there are schemas.
struct JsonTuple {
    std::vector<SchemaNodeId> items;
};
struct JsonObject {
    struct Property {
        std::string name;
        SchemaNodeId value = 0;
        bool required = false;
    };
    std::vector<Property> properties;      ///< in the order of the schema, which the answer keeps
    std::optional<SchemaNodeId> others{};  ///< of members with other names; absent: there are none
};
/// Written out, sorted, each once. Null, true and false are among them.
struct JsonLiterals {
    std::vector<std::string> texts;
};
/// One of these; a reference is one alternative.
struct Alternatives {
    std::vector<SchemaNodeId> nodes;
    bool exclusive = false;  ///< oneOf
};
using SchemaNode = std::variant<AnyJson, AnyNumber, WholeNumber, BoundedNumber, JsonText, JsonList,
                                JsonTuple, JsonObject, JsonLiterals, Alternatives>;

struct JsonSchema {
    std::vector<SchemaNode> nodes;  ///< the first is the whole
};

/// Errors: one sentence that names the place as a JSON pointer and what is wrong there. `schema` is
/// nested no deeper than the reader of the request allows.
std::expected<JsonSchema, std::string> read_schema(const boost::json::value& schema);

/// What no reader of single nodes can see: that it can be fulfilled at all, that oneOf excludes,
/// and that no more beginnings of an answer have to be followed at once than limits.h allows. "" or
/// the error.
std::string check_schema(const JsonSchema& schema);

}  // namespace fullstop::schema
