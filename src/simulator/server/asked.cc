// Paths and fields of the three dialects.
#include "simulator/server/asked.h"

#include <boost/json.hpp>

#include "simulator/server/scripted_model.h"

namespace fullstop::simulator {
namespace {

namespace json = boost::json;

std::optional<std::int64_t> number(const json::object& object, std::string_view name) {
    const auto* value = object.if_contains(name);
    if (value == nullptr || !value->is_number()) return std::nullopt;
    boost::system::error_code error;
    const auto found = value->to_number<std::int64_t>(error);
    return error ? std::nullopt : std::optional(found);
}

bool flag(const json::object& object, std::string_view name, bool otherwise) {
    const auto* value = object.if_contains(name);
    return value != nullptr && value->is_bool() ? value->get_bool() : otherwise;
}

std::string text(const json::object& object, std::string_view name) {
    const auto* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string{};
}

std::vector<answer::Message> messages(const json::object& object) {
    std::vector<answer::Message> out;
    const auto* list = object.if_contains("messages");
    if (list == nullptr || !list->is_array()) return {{"user", text(object, "prompt")}};
    for (const auto& message : list->get_array())
        if (message.is_object())
            out.push_back(
                {text(message.get_object(), "role"), text(message.get_object(), "content")});
    return out;
}

std::optional<std::int64_t> first_of(const json::object& object,
                                     std::initializer_list<std::string_view> names) {
    for (const auto name : names)
        if (const auto found = number(object, name); found && *found >= 0) return found;
    return std::nullopt;
}

}  // namespace

std::optional<Dialect> dialect_of(std::string_view target) {
    if (target.ends_with("/chat/completions")) return Dialect::kOpenAi;
    if (target.ends_with("/api/chat")) return Dialect::kOllama;
    if (target.ends_with("/completion")) return Dialect::kLlamaNative;
    return std::nullopt;
}

std::optional<Asked> read_asked(Dialect dialect, std::string_view body) {
    boost::system::error_code error;
    const auto value = json::parse(body, error);
    if (error || !value.is_object()) return std::nullopt;
    const auto& object = value.get_object();
    Asked asked{.dialect = dialect, .messages = messages(object), .model = text(object, "model")};
    const auto* options = object.if_contains("options");
    const auto& settings = dialect == Dialect::kOllama && options != nullptr && options->is_object()
                               ? options->get_object()
                               : object;
    asked.max_tokens =
        first_of(settings, {"num_predict", "n_predict", "max_completion_tokens", "max_tokens"});
    asked.seed = number(settings, "seed").value_or(0);
    asked.stream = flag(object, "stream", dialect == Dialect::kOllama);
    const auto* stream_options = object.if_contains("stream_options");
    asked.include_usage = stream_options != nullptr && stream_options->is_object() &&
                          flag(stream_options->get_object(), "include_usage", false);
    return asked;
}

}  // namespace fullstop::simulator
