// Two tables: parameters that are honoured, each with its reader, and parameters that are accepted only with the value
// that changes nothing. Everything else is refused by name.
#include "engine/openai_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/limits.h"

namespace fullstop::engine {
namespace {

namespace json = boost::json;

/// Readers return what is wrong, "" when nothing is.
using Reader = std::string (*)(const json::value&, CompletionRequest&);

std::optional<std::int64_t> integer(const json::value& value) {
    if (value.is_int64()) return value.get_int64();
    if (value.is_uint64() && value.get_uint64() <= INT64_MAX) return static_cast<std::int64_t>(value.get_uint64());
    if (value.is_double() && std::trunc(value.get_double()) == value.get_double() && std::abs(value.get_double()) < 9e15)
        return static_cast<std::int64_t>(value.get_double());
    return std::nullopt;
}

std::optional<double> number(const json::value& value) {
    if (!value.is_number()) return std::nullopt;
    return value.to_number<double>();
}

std::string read_number(const json::value& value, double low, double high, double& out, std::string_view range) {
    const auto given = number(value);
    if (!given || !std::isfinite(*given) || *given < low || *given > high) return fmt::format("is a number {}", range);
    out = *given;
    return {};
}

std::string read_flag(const json::value& value, bool& out) {
    if (!value.is_bool()) return "is true or false";
    out = value.get_bool();
    return {};
}

std::string read_model(const json::value& value, CompletionRequest& out) {
    if (!value.is_string()) return "is a name";
    out.model = value.get_string().c_str();
    return {};
}

/// A message's content: a text, or parts that are all texts.
std::optional<std::string> content_of(const json::value& value) {
    if (value.is_string()) return std::string(value.get_string());
    if (!value.is_array()) return std::nullopt;
    std::string all;
    for (const json::value& part : value.get_array()) {
        if (!part.is_object()) return std::nullopt;
        const json::value* type = part.get_object().if_contains("type");
        const json::value* text = part.get_object().if_contains("text");
        if (type == nullptr || *type != "text" || text == nullptr || !text->is_string()) return std::nullopt;
        all += text->get_string();
    }
    return all;
}

std::string read_messages(const json::value& value, CompletionRequest& out) {
    if (!value.is_array() || value.get_array().empty()) return "is a list of at least one message";
    std::vector<answer::Message> messages;
    for (std::size_t i = 0; i < value.get_array().size(); ++i) {
        const json::value& item = value.get_array()[i];
        if (!item.is_object()) return fmt::format("[{}] is an object with role and content", i);
        answer::Message message;
        for (const auto& [key, member] : item.get_object()) {
            if (key == "role" && member.is_string()) {
                message.role = std::string(member.get_string());
            } else if (key == "content") {
                auto content = content_of(member);
                if (!content) return fmt::format("[{}].content is a text, or a list of parts of type text: this model reads nothing else", i);
                message.content = std::move(*content);
            } else {
                return fmt::format("[{}].{} is not honoured by this server", i, std::string_view(key));
            }
        }
        if (message.role != "system" && message.role != "user" && message.role != "assistant") return fmt::format("[{}].role is system, user or assistant", i);
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

std::string read_max_tokens(const json::value& value, CompletionRequest& out) {
    const auto given = integer(value);
    if (!given || *given < 1) return "is a whole number of at least 1";
    if (out.submission.max_tokens && out.submission.max_tokens->count != *given)
        return "contradicts the other name of the same limit (max_tokens, max_completion_tokens)";
    out.submission.max_tokens = base::Tokens{*given};
    return {};
}

std::string read_stop(const json::value& value, CompletionRequest& out) {
    json::array one;
    if (value.is_string()) one.push_back(value);
    const json::array& all = value.is_array() ? value.get_array() : one;
    if (all.empty() && !value.is_array()) return "is a text or a list of texts";
    if (all.size() > kMaxStopStrings) return fmt::format("has at most {} texts", kMaxStopStrings);
    for (const json::value& stop : all) {
        if (!stop.is_string() || stop.get_string().empty() || stop.get_string().size() > kMaxStopBytes)
            return fmt::format("holds texts of 1 to {} bytes", kMaxStopBytes);
        out.submission.stop.emplace_back(stop.get_string());
    }
    return {};
}

std::string read_seed(const json::value& value, CompletionRequest& out) {
    if (value.is_uint64())
        out.seed = value.get_uint64();
    else if (const auto given = integer(value))
        out.seed = static_cast<std::uint64_t>(*given);
    else
        return "is a whole number";
    return {};
}

std::string read_top_k(const json::value& value, CompletionRequest& out) {
    const auto given = integer(value);
    if (!given || *given < -1) return "is a whole number; 0 or -1 turns it off";
    out.submission.sampling.top_k = std::max<std::int64_t>(0, *given);
    return {};
}

std::string read_stream_options(const json::value& value, CompletionRequest& out) {
    if (!value.is_object()) return "is an object";
    for (const auto& [key, member] : value.get_object()) {
        if (key != "include_usage") return fmt::format(".{} is not honoured by this server", std::string_view(key));
        if (const std::string wrong = read_flag(member, out.include_usage); !wrong.empty()) return ".include_usage " + wrong;
    }
    return {};
}

std::string read_user(const json::value& value, CompletionRequest&) { return value.is_string() ? "" : "is a text"; }

struct Honoured {
    std::string_view name;
    Reader read;
    std::optional<Route> only;
};
constexpr std::array kHonoured = {
    Honoured{"model", read_model, {}},
    Honoured{"messages", read_messages, Route::kChat},
    Honoured{"prompt", read_prompt, Route::kText},
    Honoured{"max_tokens", read_max_tokens, {}},
    Honoured{"max_completion_tokens", read_max_tokens, Route::kChat},
    Honoured{"stop", read_stop, {}},
    Honoured{"seed", read_seed, {}},
    Honoured{"stream", [](const json::value& v, CompletionRequest& out) { return read_flag(v, out.stream); }, {}},
    Honoured{"stream_options", read_stream_options, {}},
    Honoured{"temperature",
             [](const json::value& v, CompletionRequest& out) { return read_number(v, 0, 100, out.submission.sampling.temperature, "from 0 to 100"); },
             {}},
    Honoured{
        "top_p", [](const json::value& v, CompletionRequest& out) { return read_number(v, 1e-9, 1, out.submission.sampling.top_p, "above 0, at most 1"); }, {}},
    Honoured{"min_p", [](const json::value& v, CompletionRequest& out) { return read_number(v, 0, 1, out.submission.sampling.min_p, "from 0 to 1"); }, {}},
    Honoured{"top_k", read_top_k, {}},
    // Names the person behind the client; by definition it changes nothing of the answer.
    Honoured{"user", read_user, {}},
};

/// Values that ask for what is done anyway.
struct Neutral {
    std::string_view name;
    std::string_view value;  ///< JSON
};
constexpr std::array kNeutral = {
    Neutral{"n", "1"},
    Neutral{"best_of", "1"},
    Neutral{"frequency_penalty", "0"},
    Neutral{"presence_penalty", "0"},
    Neutral{"logprobs", "false"},
    Neutral{"echo", "false"},
    Neutral{"repeat_penalty", "1"},
    Neutral{"repetition_penalty", "1"},
    Neutral{"logit_bias", "{}"},
    Neutral{"tools", "[]"},
    Neutral{"tool_choice", "\"none\""},
    Neutral{"response_format", R"({"type":"text"})"},
    Neutral{"store", "false"},
    Neutral{"suffix", "\"\""},
};

bool same_value(const json::value& given, const json::value& neutral) {
    const auto a = number(given), b = number(neutral);
    return a && b ? *a == *b : given == neutral;
}

/// Whether the parameter is one of ours, and what is wrong with it.
enum class Reading { kDone, kUnknown, kNotHonoured };
std::pair<Reading, std::string> read_parameter(std::string_view name, const json::value& value, CompletionRequest& out) {
    for (const Honoured& parameter : kHonoured)
        if (parameter.name == name && (!parameter.only || *parameter.only == out.route))
            return {Reading::kDone, value.is_null() ? "" : parameter.read(value, out)};
    for (const Neutral& parameter : kNeutral) {
        if (parameter.name != name) continue;
        if (value.is_null() || same_value(value, json::parse(parameter.value))) return {Reading::kDone, ""};
        return {Reading::kNotHonoured, fmt::format("{} (only {} is)", name, parameter.value)};
    }
    return {Reading::kUnknown, std::string(name)};
}

std::string missing_part(const CompletionRequest& request, const json::object& body) {
    const std::string_view wanted = request.route == Route::kChat ? "messages" : "prompt";
    const json::value* given = body.if_contains(wanted);
    return given == nullptr || given->is_null() ? std::string(wanted) : std::string();
}

}  // namespace

std::expected<CompletionRequest, BadRequest> parse_completion(Route route, std::string_view body) {
    boost::system::error_code error;
    json::parse_options options;
    options.max_depth = kMaxJsonDepth;
    const json::value parsed = json::parse(body, error, {}, options);
    if (error) return std::unexpected(BadRequest{fmt::format("the body is not JSON: {}", error.message()), ""});
    if (!parsed.is_object()) return std::unexpected(BadRequest{"the body is not a JSON object", ""});

    CompletionRequest request;
    request.route = route;
    std::vector<std::string> refused;
    std::string first_refused;
    for (const auto& [key, value] : parsed.get_object()) {
        auto [reading, text] = read_parameter(key, value, request);
        if (reading == Reading::kDone) {
            if (!text.empty())
                return std::unexpected(
                    BadRequest{fmt::format("{}{}{}", std::string_view(key), text.starts_with('.') || text.starts_with('[') ? "" : " ", text), key});
            continue;
        }
        if (refused.empty()) first_refused = key;
        refused.push_back(std::move(text));
    }
    if (!refused.empty()) return std::unexpected(BadRequest{fmt::format("not honoured by this server: {}", fmt::join(refused, ", ")), first_refused});
    if (auto missing = missing_part(request, parsed.get_object()); !missing.empty())
        return std::unexpected(BadRequest{fmt::format("{} is missing", missing), missing});
    if (request.include_usage && !request.stream) return std::unexpected(BadRequest{"stream_options is for streams only", "stream_options"});
    return request;
}

}  // namespace fullstop::engine
