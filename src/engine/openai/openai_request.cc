// Two tables: parameters that are honoured, each with its reader, and parameters that are accepted
// only with the value that changes nothing. Everything else is refused by name.
#include "engine/openai/openai_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <boost/json.hpp>
#include <utility>
#include <vector>

#include "engine/openai/json_body.h"
#include "engine/openai/request_readers.h"

namespace fullstop::engine {
namespace {

namespace json = boost::json;

std::string read_model(const json::value& value, CompletionRequest& out) {
    if (!value.is_string()) return "is a name";
    out.model = std::string(value.get_string());
    return {};
}

std::string read_stream_options(const json::value& value, CompletionRequest& out) {
    if (!value.is_object()) return "is an object";
    for (const auto& [key, member] : value.get_object()) {
        if (key != "include_usage")
            return fmt::format(".{} is not honoured by this server", std::string_view(key));
        if (const std::string wrong = read_flag(member, out.include_usage); !wrong.empty())
            return ".include_usage " + wrong;
    }
    return {};
}

std::string read_user(const json::value& value, CompletionRequest&) {
    return value.is_string() ? "" : "is a text";
}

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
    Honoured{"stream",
             [](const json::value& v, CompletionRequest& out) { return read_flag(v, out.stream); },
             {}},
    Honoured{"stream_options", read_stream_options, {}},
    Honoured{"temperature", read_temperature, {}},
    Honoured{"top_p", read_top_p, {}},
    Honoured{"min_p", read_min_p, {}},
    Honoured{"top_k", read_top_k, {}},
    Honoured{"frequency_penalty", read_frequency_penalty, {}},
    Honoured{"presence_penalty", read_presence_penalty, {}},
    Honoured{"logit_bias", read_logit_bias, {}},
    Honoured{"logprobs", read_chat_logprobs, Route::kChat},
    Honoured{"top_logprobs", read_top_logprobs, Route::kChat},
    Honoured{"logprobs", read_text_logprobs, Route::kText},
    Honoured{"response_format", read_response_format, {}},
    Honoured{"fullstop", read_fullstop, {}},
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
    Neutral{"echo", "false"},
    Neutral{"repeat_penalty", "1"},
    Neutral{"repetition_penalty", "1"},
    Neutral{"tools", "[]"},
    Neutral{"tool_choice", "\"none\""},
    Neutral{"store", "false"},
    Neutral{"suffix", "\"\""},
};

bool same_value(const json::value& given, const json::value& neutral) {
    const auto a = number(given), b = number(neutral);
    return a && b ? *a == *b : given == neutral;
}

/// Whether the parameter is one of ours, and what is wrong with it.
enum class Reading { kDone, kUnknown, kNotHonoured };
std::pair<Reading, std::string> read_parameter(std::string_view name, const json::value& value,
                                               CompletionRequest& out) {
    for (const Honoured& parameter : kHonoured)
        if (parameter.name == name && (!parameter.only || *parameter.only == out.route))
            return {Reading::kDone, value.is_null() ? "" : parameter.read(value, out)};
    for (const Neutral& parameter : kNeutral) {
        if (parameter.name != name) continue;
        if (value.is_null() || same_value(value, json::parse(parameter.value)))
            return {Reading::kDone, ""};
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
    const auto parsed = parse_body(body);
    if (!parsed) return std::unexpected(BadRequest{parsed.error().message, parsed.error().key});

    CompletionRequest request;
    request.route = route;
    std::vector<std::string> refused;
    std::string first_refused;
    for (const auto& [key, value] : *parsed) {
        auto [reading, text] = read_parameter(key, value, request);
        if (reading == Reading::kDone) {
            if (!text.empty())
                return std::unexpected(BadRequest{
                    fmt::format("{}{}{}", std::string_view(key),
                                text.starts_with('.') || text.starts_with('[') ? "" : " ", text),
                    key});
            continue;
        }
        if (refused.empty()) first_refused = key;
        refused.push_back(std::move(text));
    }
    if (!refused.empty())
        return std::unexpected(
            BadRequest{fmt::format("not honoured by this server: {}", fmt::join(refused, ", ")),
                       first_refused});
    if (auto missing = missing_part(request, *parsed); !missing.empty())
        return std::unexpected(BadRequest{fmt::format("{} is missing", missing), missing});
    if (request.include_usage && !request.stream)
        return std::unexpected(BadRequest{"stream_options is for streams only", "stream_options"});
    if (request.top_logprobs && !request.wants_logprobs)
        return std::unexpected(BadRequest{"top_logprobs needs logprobs: true", "top_logprobs"});
    if (request.wants_logprobs) request.submission.logprobs = request.top_logprobs.value_or(0);
    return request;
}

}  // namespace fullstop::engine
