// What the keywords of each kind of schema say.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "schema/integer.h"
#include "schema/limits.h"
#include "schema/reader.h"

namespace fullstop::schema {

namespace json = boost::json;

namespace {

bool is_type(const json::value& value, std::string_view type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_bool();
    if (type == "null") return value.is_null();
    return type == "number" ? value.is_number() : integer(value).has_value();
}

std::optional<TextForm> text_form(std::string_view format) {
    if (format == "date") return TextForm::kDate;
    if (format == "time") return TextForm::kTime;
    if (format == "date-time") return TextForm::kDateTime;
    if (format == "uuid") return TextForm::kUuid;
    return std::nullopt;
}

/// JSON pointers write these two in their own way.
std::string as_step(std::string_view name) {
    std::string out = "/";
    for (const char c : name) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return out;
}

}  // namespace

SchemaNode SchemaReader::alternatives(const Place& place, std::string_view key) {
    const json::value& given = place.schema->get_object().at(key);
    if (key == "$ref") {
        if (!given.is_string()) return fail(place, "$ref is a text"), Alternatives{};
        return Alternatives{{target(place, given.get_string())}};
    }
    if (!given.is_array() || given.get_array().empty())
        return fail(place, fmt::format("{} is a list of at least one schema", key)), Alternatives{};
    const json::array& all = given.get_array();
    if (key == "allOf" && all.size() > 1)
        return fail(place, "allOf of more than one schema is not honoured: write them as one"),
               Alternatives{};
    Alternatives out{.nodes = {}, .exclusive = key == "oneOf"};
    for (std::size_t i = 0; i < all.size(); ++i)
        out.nodes.push_back(add({&all[i], fmt::format("{}/{}/{}", place.path, key, i)}));
    return out;
}

SchemaNode SchemaReader::literals(const Place& place, const json::object& schema,
                                  const std::vector<std::string_view>& types) {
    json::array one;
    if (const json::value* value = schema.if_contains("const")) one.push_back(*value);
    const json::value* many = schema.if_contains("enum");
    if (many != nullptr && (!many->is_array() || many->get_array().empty()))
        return fail(place, "enum is a list of at least one value"), JsonLiterals{};
    JsonLiterals out;
    for (const json::value& value : many == nullptr ? one : many->get_array()) {
        if (!types.empty() && std::ranges::none_of(types, [&](std::string_view type) {
                return is_type(value, type);
            }))
            fail(place, fmt::format("{} is not of the type that stands beside it",
                                    json::serialize(value)));
        out.texts.push_back(json::serialize(value));
    }
    std::ranges::sort(out.texts);
    const auto again = std::ranges::unique(out.texts);
    out.texts.erase(again.begin(), again.end());
    literals_ += out.texts.size();
    if (literals_ > kMaxSchemaValues)
        fail(place,
             fmt::format("the schema has more than {} values of enum and const", kMaxSchemaValues));
    return out;
}

SchemaNode SchemaReader::object(const Place& place, const json::object& schema) {
    JsonObject out;
    const json::value* properties = schema.if_contains("properties");
    if (properties != nullptr && !properties->is_object())
        return fail(place, "properties is an object"), out;
    if (properties != nullptr)
        for (const auto& member : properties->get_object()) {
            if (member.key().size() > kMaxSchemaNameBytes)
                fail(place, fmt::format("the name of a property has at most {} bytes",
                                        kMaxSchemaNameBytes));
            out.properties.push_back(
                {std::string(member.key()),
                 add({&member.value(), place.path + "/properties" + as_step(member.key())})});
        }
    read_others(place, schema, out);
    read_required(place, schema, out);
    return out;
}

/// Members that no schema describes may come where one asks for them. Where some are described, no
/// others are made up.
void SchemaReader::read_others(const Place& place, const json::object& schema, JsonObject& out) {
    const json::value* others = schema.if_contains("additionalProperties");
    const json::value anything = true;
    if (others == nullptr && out.properties.empty()) others = &anything;
    if (others == nullptr || *others == json::value(false)) return;
    for (const auto& property : out.properties) excluded_bytes_ += property.name.size();
    if (excluded_bytes_ > kMaxExcludedNameBytes)
        fail(place, fmt::format("the names beside which others may come have more than {} bytes: "
                                "set additionalProperties to false",
                                kMaxExcludedNameBytes));
    out.others = add({others, place.path + "/additionalProperties"});
}

void SchemaReader::read_required(const Place& place, const json::object& schema, JsonObject& out) {
    const json::value* required = schema.if_contains("required");
    if (required == nullptr) return;
    if (!required->is_array()) return fail(place, "required is a list of names");
    std::map<std::string_view, JsonObject::Property*> by_name;
    for (JsonObject::Property& property : out.properties) by_name.emplace(property.name, &property);
    for (const json::value& name : required->get_array()) {
        const auto found =
            name.is_string() ? by_name.find(std::string_view(name.get_string())) : by_name.end();
        if (found == by_name.end())
            return fail(place, fmt::format("required names {}, which properties does not describe",
                                           json::serialize(name)));
        found->second->required = true;
    }
}

SchemaNode SchemaReader::list(const Place& place, const json::object& schema) {
    const auto least = count(place, schema, "minItems"), most = count(place, schema, "maxItems");
    if (least && most && *least > *most) fail(place, "minItems is above maxItems");
    const json::value *items = schema.if_contains("items"),
                      *first = schema.if_contains("prefixItems");
    if (first == nullptr) {
        const json::value anything = true;
        count_rules(place, most.value_or(least.value_or(0)));
        return JsonList{.item = add({items == nullptr ? &anything : items, place.path + "/items"}),
                        .least = least.value_or(0),
                        .most = most};
    }
    if (!first->is_array() || first->get_array().empty())
        return fail(place, "prefixItems is a list of at least one schema"), JsonTuple{};
    const auto size = static_cast<std::int64_t>(first->get_array().size());
    // One list of exactly so many fulfils the schema; fewer or more would, too.
    if (least.value_or(size) > size || most.value_or(size) < size ||
        (items != nullptr && *items != json::value(false)))
        return fail(place,
                    "prefixItems is honoured for lists of exactly so many items: without items, or "
                    "with items false"),
               JsonTuple{};
    JsonTuple out;
    for (std::size_t i = 0; i < first->get_array().size(); ++i)
        out.items.push_back(
            add({&first->get_array()[i], fmt::format("{}/prefixItems/{}", place.path, i)}));
    return out;
}

SchemaNode SchemaReader::text(const Place& place, const json::object& schema) {
    const auto least = count(place, schema, "minLength"), most = count(place, schema, "maxLength");
    if (least && most && *least > *most) fail(place, "minLength is above maxLength");
    count_rules(place, most.value_or(least.value_or(0)));
    JsonText out{.least = least.value_or(0), .most = most};
    if (const json::value* format = schema.if_contains("format")) {
        const auto form = format->is_string() ? text_form(format->get_string()) : std::nullopt;
        if (!form)
            fail(place, fmt::format("format {} is not honoured; date, time, date-time and uuid are",
                                    json::serialize(*format)));
        if (least || most) fail(place, "format and a length together are not honoured");
        out.form = form.value_or(TextForm::kFree);
    }
    if (const json::value* pattern = schema.if_contains("pattern"))
        read_text_pattern(place, *pattern, out);
    return out;
}

void SchemaReader::read_text_pattern(const Place& place, const json::value& pattern,
                                     JsonText& out) {
    if (!pattern.is_string()) return fail(place, "pattern is a text");
    if (out.form != TextForm::kFree || out.least > 0 || out.most)
        return fail(place, "pattern beside a length or a format is not honoured");
    auto read = read_pattern(pattern.get_string(), pattern_work_);
    if (!read) return fail(place, "pattern: " + read.error());
    out.form = TextForm::kPattern;
    out.pattern = std::move(*read);
    count_rules(place, std::ssize(out.pattern.states));
}

void SchemaReader::count_rules(const Place& place, std::int64_t more) {
    repetitions_ += more;
    if (repetitions_ > kMaxSchemaRepetitions)
        fail(place,
             fmt::format(
                 "the counts of this schema and the states of its patterns add up to more than {}",
                 kMaxSchemaRepetitions));
}

SchemaNode SchemaReader::whole_number(const Place& place, const json::object& schema) {
    const WholeNumber out{
        .low = bound(place, schema, "minimum", "exclusiveMinimum", 1).value_or(-kMaxWholeNumber),
        .high = bound(place, schema, "maximum", "exclusiveMaximum", -1).value_or(kMaxWholeNumber)};
    if (out.low > out.high) fail(place, "no whole number is between its bounds");
    return out;
}

/// Bounds that are not whole numbers, and excluded ones, would take more digits than are worth it.
SchemaNode SchemaReader::number(const Place& place, const json::object& schema) {
    if (!schema.contains("minimum") && !schema.contains("maximum")) return AnyNumber{};
    const BoundedNumber out{
        .low = bound(place, schema, "minimum", "", 0).value_or(-kMaxWholeNumber),
        .high = bound(place, schema, "maximum", "", 0).value_or(kMaxWholeNumber)};
    if (out.low > out.high) fail(place, "no number is between its bounds");
    return out;
}

std::optional<std::int64_t> SchemaReader::count(const Place& place, const json::object& schema,
                                                std::string_view key) {
    const json::value* given = schema.if_contains(key);
    if (given == nullptr) return std::nullopt;
    const auto value = integer(*given);
    if (value && *value >= 0 && *value <= kMaxSchemaCount) return value;
    fail(place, fmt::format("{} is a whole number from 0 to {}", key, kMaxSchemaCount));
    return std::nullopt;
}

std::optional<std::int64_t> SchemaReader::bound(const Place& place, const json::object& schema,
                                                std::string_view key, std::string_view exclusive,
                                                int inwards) {
    if (!exclusive.empty() && schema.contains(key) && schema.contains(exclusive))
        fail(place, fmt::format("{} and {} together are not honoured", key, exclusive));
    const bool included = schema.contains(key);
    const json::value* given =
        included || !exclusive.empty() ? schema.if_contains(included ? key : exclusive) : nullptr;
    if (given == nullptr) return std::nullopt;
    const auto value = integer(*given);
    if (!value || *value < -kMaxWholeNumber || *value > kMaxWholeNumber) {
        fail(place, fmt::format("{} is honoured where it is a whole number of at most 15 digits",
                                included ? key : exclusive));
        return std::nullopt;
    }
    return included ? *value : *value + inwards;
}

}  // namespace fullstop::schema
