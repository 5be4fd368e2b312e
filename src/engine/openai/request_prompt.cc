// The conversation or the text that is to be continued.

#include "engine/openai/request_readers.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace fullstop::engine {

namespace json = boost::json;

namespace {

/// A message's content: a text, or parts that are all texts. Parts are lines of their own, as in
/// llama-server and vLLM.
std::optional<std::string> content_of(const json::value& value) {
    if (value.is_string()) return std::string(value.get_string());
    if (!value.is_array()) return std::nullopt;
    std::string all;
    bool first = true;
    for (const json::value& part : value.get_array()) {
        if (!part.is_object()) return std::nullopt;
        const json::value* type = part.get_object().if_contains("type");
        const json::value* text = part.get_object().if_contains("text");
        if (type == nullptr || *type != "text" || text == nullptr || !text->is_string())
            return std::nullopt;
        if (!first) all += '\n';
        first = false;
        all += text->get_string();
    }
    return all;
}

/// `developer` is OpenAI's newer word for `system`.
std::optional<std::string> role_of(std::string_view role) {
    if (role == "developer") return "system";
    if (role == "system" || role == "user" || role == "assistant") return std::string(role);
    return std::nullopt;
}

std::string read_message(const json::object& item, answer::Message& out) {
    for (const auto& [key, member] : item) {
        if (key == "role") {
            const auto role = member.is_string() ? role_of(member.get_string()) : std::nullopt;
            if (!role) return ".role is system, developer, user or assistant";
            out.role = *role;
        } else if (key == "content") {
            auto content = content_of(member);
            if (!content)
                return ".content is a text, or a list of parts of type text: this model reads "
                       "nothing else";
            out.content = std::move(*content);
        } else {
            return fmt::format(".{} is not honoured by this server", std::string_view(key));
        }
    }
    return out.role.empty()           ? ".role is missing"
           : item.contains("content") ? ""
                                      : ".content is missing";
}

}  // namespace

std::string read_messages(const json::value& value, CompletionRequest& out) {
    if (!value.is_array() || value.get_array().empty()) return "is a list of at least one message";
    std::vector<answer::Message> messages;
    for (std::size_t i = 0; i < value.get_array().size(); ++i) {
        const json::value& item = value.get_array()[i];
        if (!item.is_object()) return fmt::format("[{}] is an object with role and content", i);
        answer::Message message;
        if (const std::string wrong = read_message(item.get_object(), message); !wrong.empty())
            return fmt::format("[{}]{}", i, wrong);
        messages.push_back(std::move(message));
    }
    out.submission.prompt = std::move(messages);
    return {};
}

std::string read_prompt(const json::value& value, CompletionRequest& out) {
    const json::value* text = &value;
    if (value.is_array() && value.get_array().size() == 1) text = &value.get_array()[0];
    if (!text->is_string()) return "is one text";
    out.submission.prompt = std::string(text->get_string());
    return {};
}

}  // namespace fullstop::engine
