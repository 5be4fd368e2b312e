// Limits and chances: how long the answer may be and how its tokens are chosen.

#include "engine/openai/request_readers.h"
#include "schema/integer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "engine/limits.h"

namespace fullstop::engine {

namespace json = boost::json;

std::string read_max_tokens(const json::value& value, CompletionRequest& out) {
    const auto size = number(value);
    const auto given = size && *size >= static_cast<double>(kMostTokens.count)
                           ? kMostTokens.count
                           : schema::integer(value);
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
        if (!stop.is_string() || stop.get_string().empty() ||
            stop.get_string().size() > kMaxStopBytes)
            return fmt::format("holds texts of 1 to {} bytes", kMaxStopBytes);
        out.submission.stop.emplace_back(stop.get_string());
    }
    return {};
}

std::string read_seed(const json::value& value, CompletionRequest& out) {
    if (value.is_uint64())
        out.seed = value.get_uint64();
    else if (const auto given = schema::integer(value))
        out.seed = static_cast<std::uint64_t>(*given);
    else
        return "is a whole number";
    return {};
}

std::string read_top_k(const json::value& value, CompletionRequest& out) {
    const auto given = schema::integer(value);
    if (!given || *given < -1) return "is a whole number; 0 or -1 turns it off";
    out.submission.sampling.top_k = std::clamp<std::int64_t>(*given, 0, kMostTokens.count);
    return {};
}

std::string read_temperature(const json::value& value, CompletionRequest& out) {
    return read_number(value, 0, 100, out.submission.sampling.temperature, "from 0 to 100");
}
std::string read_top_p(const json::value& value, CompletionRequest& out) {
    return read_number(value, 1e-9, 1, out.submission.sampling.top_p, "above 0, at most 1");
}
std::string read_min_p(const json::value& value, CompletionRequest& out) {
    return read_number(value, 0, 1, out.submission.sampling.min_p, "from 0 to 1");
}

std::string read_frequency_penalty(const json::value& value, CompletionRequest& out) {
    return read_number(value, -2, 2, out.submission.sampling.frequency_penalty, "from -2 to 2");
}
std::string read_presence_penalty(const json::value& value, CompletionRequest& out) {
    return read_number(value, -2, 2, out.submission.sampling.presence_penalty, "from -2 to 2");
}

std::string read_logit_bias(const json::value& value, CompletionRequest& out) {
    if (!value.is_object()) return "is an object from token ids to numbers";
    if (value.get_object().size() > kMaxLogitBias)
        return fmt::format("has at most {} tokens", kMaxLogitBias);
    for (const auto& [key, member] : value.get_object()) {
        TokenId token = 0;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
        if (error != std::errc() || end != key.data() + key.size() || token < 0)
            return fmt::format("names tokens by their numbers, not \"{}\"", std::string_view(key));
        double bias = 0;
        if (const auto wrong = read_number(member, -100, 100, bias, "from -100 to 100");
            !wrong.empty())
            return fmt::format("[{}] {}", token, wrong);
        out.submission.sampling.logit_bias.emplace_back(token, static_cast<float>(bias));
    }
    return {};
}

std::string read_chat_logprobs(const json::value& value, CompletionRequest& out) {
    if (!value.is_bool()) return "is true or false; how many alternatives is top_logprobs";
    out.wants_logprobs = value.get_bool();
    return {};
}

std::string read_top_logprobs(const json::value& value, CompletionRequest& out) {
    const auto given = schema::integer(value);
    if (!given || *given < 0 || *given > kMaxTopLogprobs)
        return fmt::format("is a whole number from 0 to {}", kMaxTopLogprobs);
    out.top_logprobs = static_cast<int>(*given);
    return {};
}

/// Here one number says both: whether, and how many alternatives.
std::string read_text_logprobs(const json::value& value, CompletionRequest& out) {
    if (value.is_bool() && !value.get_bool()) return {};
    out.wants_logprobs = true;
    return read_top_logprobs(value, out);
}

}  // namespace fullstop::engine
