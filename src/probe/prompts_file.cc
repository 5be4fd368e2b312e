// Prompts of the user's own, one JSON object a line (contract section 4). Whatever is wrong is said
// with file, line and field, and nothing is guessed: an unknown field is an error, because a
// misspelled max_tokens would change the experiment.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <initializer_list>
#include <map>
#include <regex>

#include "probe/schedule.h"

namespace fullstop::probe {
namespace {

namespace json = boost::json;

// name                                   value       at the limit
/// A probe of more prompts would run for days; a wrong file is likelier.                   usage
/// error
constexpr std::size_t kMaxPrompts = 10'000;
/// One line; the longest windows known hold about 4 MiB of text.                           usage
/// error
constexpr std::size_t kMaxLineBytes = 16 * 1024 * 1024;
/// An id is a name in tables and files.                                                    usage
/// error
constexpr std::size_t kMaxIdBytes = 200;
/// Larger than any window known; beyond it the number is a slip.                           usage
/// error
constexpr std::int64_t kMaxTokens = 100'000'000;

constexpr const char* kShape =
    R"(one object a line: {"id": "planets", "prompt": "..." or "messages": [{"role": "user", "content": "..."}], and optionally "system", "max_tokens", "check", "tags"})";

/// Where in the file an error is: thrown inside this file only, and turned into a base::Error at
/// its edge.
struct Wrong {
    std::string field;  ///< "" for the whole line
    std::string what;
};

const json::object& object_of(const json::value& value, const std::string& field) {
    if (!value.is_object()) throw Wrong{field, "is not an object"};
    return value.get_object();
}

std::string text_of(const json::value& value, const std::string& field, bool may_be_empty = false) {
    if (!value.is_string()) throw Wrong{field, "is not a text"};
    if (value.get_string().empty() && !may_be_empty) throw Wrong{field, "is empty"};
    return std::string(value.get_string());
}

std::int64_t count_of(const json::value& value, const std::string& field) {
    if (!value.is_int64() || value.get_int64() < 1 || value.get_int64() > kMaxTokens)
        throw Wrong{field, fmt::format("is not a whole number from 1 to {}", kMaxTokens)};
    return value.get_int64();
}

std::vector<std::string> texts_of(const json::value& value, const std::string& field) {
    if (!value.is_array()) throw Wrong{field, "is not a list of texts"};
    std::vector<std::string> out;
    for (const json::value& item : value.get_array())
        out.push_back(text_of(item, fmt::format("{}[{}]", field, out.size())));
    return out;
}

void only(const json::object& object, const std::string& prefix,
          std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : object) {
        const std::string_view name(key.data(), key.size());
        bool found = false;
        for (const std::string_view candidate : known) found = found || candidate == name;
        if (!found) throw Wrong{prefix + std::string(name), "is not known here"};
    }
}

std::string id_of(const json::object& line) {
    const auto* value = line.if_contains("id");
    if (!value) throw Wrong{"id", "is missing"};
    std::string id = text_of(*value, "id");
    if (id.size() > kMaxIdBytes)
        throw Wrong{"id", fmt::format("is longer than {} bytes", kMaxIdBytes)};
    for (const char c : id)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            throw Wrong{"id", "holds a control character"};
    return id;
}

answer::Message message_of(const json::value& value, const std::string& field) {
    const json::object& object = object_of(value, field);
    only(object, field + ".", {"role", "content"});
    for (const char* name : {"role", "content"})
        if (!object.contains(name)) throw Wrong{field + "." + name, "is missing"};
    answer::Message message{text_of(object.at("role"), field + ".role"),
                            text_of(object.at("content"), field + ".content", true)};
    if (message.role != "system" && message.role != "user" && message.role != "assistant")
        throw Wrong{field + ".role", "is none of system, user, assistant"};
    return message;
}

std::vector<answer::Message> messages_of(const json::object& line) {
    const auto* prompt = line.if_contains("prompt");
    const auto* list = line.if_contains("messages");
    if (prompt && list) throw Wrong{"messages", "stands beside \"prompt\"; give one of them"};
    if (!prompt && !list) throw Wrong{"prompt", "is missing, and so is \"messages\""};
    std::vector<answer::Message> messages;
    if (prompt) messages.push_back({"user", text_of(*prompt, "prompt")});
    if (list) {
        if (!list->is_array() || list->get_array().empty())
            throw Wrong{"messages", "is not a list of messages"};
        for (const json::value& item : list->get_array())
            messages.push_back(message_of(item, fmt::format("messages[{}]", messages.size())));
    }
    if (const auto* system = line.if_contains("system")) {
        if (messages.front().role == "system")
            throw Wrong{"system", "stands beside a system message; give one of them"};
        messages.insert(messages.begin(), {"system", text_of(*system, "system")});
    }
    return messages;
}

std::string regex_of(const json::value& value) {
    std::string pattern = text_of(value, "check.regex");
    try {
        static_cast<void>(std::regex(pattern, std::regex::ECMAScript));
    } catch (const std::regex_error& error) {
        throw Wrong{"check.regex", fmt::format("is not an ECMAScript pattern ({})", error.what())};
    }
    return pattern;
}

answer::Check check_of(const json::value& value) {
    const json::object& object = object_of(value, "check");
    only(object, "check.", {"items", "contains", "json", "regex", "ends_with"});
    answer::Check check;
    if (const auto* items = object.if_contains("items"))
        check.items = static_cast<int>(count_of(*items, "check.items"));
    if (const auto* contains = object.if_contains("contains")) {
        check.contains = texts_of(*contains, "check.contains");
        if (check.contains.empty()) throw Wrong{"check.contains", "is empty"};
    }
    if (const auto* flag = object.if_contains("json")) {
        if (!flag->is_bool()) throw Wrong{"check.json", "is neither true nor false"};
        check.json = flag->get_bool();
    }
    if (const auto* pattern = object.if_contains("regex")) check.regex = regex_of(*pattern);
    if (const auto* end = object.if_contains("ends_with"))
        check.ends_with = text_of(*end, "check.ends_with");
    return check;
}

answer::Prompt prompt_of(std::string_view line) {
    if (line.size() > kMaxLineBytes)
        throw Wrong{"", fmt::format("is longer than {} MiB", kMaxLineBytes >> 20)};
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    if (error) throw Wrong{"", fmt::format("is not JSON ({})", error.message())};
    if (!value.is_object()) throw Wrong{"", "is not a JSON object"};
    const json::object& object = value.get_object();
    only(object, "", {"id", "messages", "prompt", "system", "max_tokens", "check", "tags"});
    answer::Prompt prompt;
    prompt.id = id_of(object);
    prompt.messages = messages_of(object);
    if (const auto* limit = object.if_contains("max_tokens"))
        prompt.max_tokens = base::Tokens{count_of(*limit, "max_tokens")};
    if (const auto* check = object.if_contains("check")) prompt.check = check_of(*check);
    if (const auto* tags = object.if_contains("tags")) prompt.tags = texts_of(*tags, "tags");
    return prompt;
}

}  // namespace

base::Result<std::vector<answer::Prompt>> parse_prompts(std::string_view jsonl,
                                                        std::string_view file_name) {
    if (jsonl.starts_with("\xEF\xBB\xBF")) jsonl.remove_prefix(3);
    std::vector<answer::Prompt> prompts;
    std::map<std::string, std::size_t> line_of_id;
    for (std::size_t number = 1; !jsonl.empty(); ++number) {
        std::string_view line = jsonl.substr(0, jsonl.find('\n'));
        jsonl.remove_prefix(std::min(jsonl.size(), line.size() + 1));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
        try {
            answer::Prompt prompt = prompt_of(line);
            const auto [seen, fresh] = line_of_id.emplace(prompt.id, number);
            if (!fresh)
                throw Wrong{
                    "id", fmt::format("\"{}\" stands on line {} already", prompt.id, seen->second)};
            prompts.push_back(std::move(prompt));
        } catch (const Wrong& wrong) {
            const std::string field =
                wrong.field.empty() ? "the line" : "field \"" + wrong.field + "\"";
            return base::usage_error(
                fmt::format("{}, line {}: {} {}", file_name, number, field, wrong.what), kShape);
        }
        if (prompts.size() > kMaxPrompts)
            return base::usage_error(
                fmt::format("{} holds more than {} prompts", file_name, kMaxPrompts),
                "split the file");
    }
    if (prompts.empty())
        return base::usage_error(fmt::format("{} holds no prompt", file_name), kShape);
    return prompts;
}

}  // namespace fullstop::probe
