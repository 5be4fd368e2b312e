// The form that was asked of an answer, as a grammar. The prompt is not changed: who wants JSON
// says so in the messages, too, because a model that was not told writes what fits the form and
// nothing else.

#include <fmt/format.h>

#include <boost/json.hpp>

#include "engine/openai/request_readers.h"
#include "schema/grammar.h"

namespace fullstop::engine {

namespace json = boost::json;

namespace {

std::string read_schema_into(const json::value& value, std::string_view place,
                             CompletionRequest& out) {
    const auto read = schema::read_schema(value);
    if (!read) return fmt::format("{} {}", place, read.error());
    out.submission.grammar = schema::grammar_of(*read);
    return {};
}

/// `strict` may be anything: an answer that does not fulfil the schema is never given.
std::string read_json_schema(const json::value& value, CompletionRequest& out) {
    if (!value.is_object()) return ".json_schema is an object with name and schema";
    const json::object& given = value.get_object();
    for (const auto& [key, member] : given) {
        if ((key == "name" || key == "description") && (member.is_string() || member.is_null()))
            continue;
        if (key == "strict" && (member.is_bool() || member.is_null())) continue;
        if (key == "name" || key == "description")
            return fmt::format(".json_schema.{} is a text", std::string_view(key));
        if (key == "strict") return ".json_schema.strict is true or false";
        if (key != "schema")
            return fmt::format(".json_schema.{} is not honoured by this server",
                               std::string_view(key));
    }
    const json::value* wanted = given.if_contains("schema");
    return wanted == nullptr ? ".json_schema.schema is missing"
                             : read_schema_into(*wanted, ".json_schema.schema", out);
}

}  // namespace

std::string read_response_format(const json::value& value, CompletionRequest& out) {
    const json::object* format = value.if_object();
    const json::value* type = format == nullptr ? nullptr : format->if_contains("type");
    const std::string_view name = type != nullptr && type->is_string()
                                      ? std::string_view(type->get_string())
                                      : std::string_view();
    const std::string_view detail = name == "json_schema"   ? "json_schema"
                                    : name == "json_object" ? "schema"
                                                            : "type";
    if (name != "text" && name != "json_object" && name != "json_schema")
        return ".type is text, json_object or json_schema";
    for (const auto& member : *format)
        if (member.key() != "type" && member.key() != detail)
            return fmt::format(".{} is not honoured by this server",
                               std::string_view(member.key()));
    if (name == "text") return {};
    if (const json::value* given = format->if_contains(detail))
        return name == "json_schema" ? read_json_schema(*given, out)
                                     : read_schema_into(*given, ".schema", out);
    if (name == "json_schema") return ".json_schema is missing";
    out.submission.grammar = schema::json_object_grammar();
    return {};
}

}  // namespace fullstop::engine
