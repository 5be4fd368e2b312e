// What was asked: one prompt with its sampling, as sent to one server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace fullstop::answer {

/// The dialects of the contract (`--api`).
enum class Api { kOpenAiChat, kOpenAiCompletions, kOllama, kLlamaServer, kKoboldCpp, kTgi };

std::string_view to_string(Api);
std::optional<Api> parse_api(std::string_view);

struct Message {
    std::string role;  ///< "system", "user" or "assistant"
    std::string content;
    bool operator==(const Message&) const = default;
};

/// How completeness of meaning is measured (contract section 4). Several may be given; coverage is
/// their mean.
struct Check {
    std::optional<int> items;           ///< this many distinct list items
    std::vector<std::string> contains;  ///< required facts, compared without case
    bool json = false;                  ///< the answer holds one well-formed JSON document
    std::optional<std::string> regex;   ///< ECMAScript, searched
    std::optional<std::string> ends_with;
    bool empty() const { return !items && contains.empty() && !json && !regex && !ends_with; }
    bool operator==(const Check&) const = default;
};

struct Prompt {
    std::string id;
    std::vector<Message> messages;
    std::optional<base::Tokens> max_tokens;  ///< overrides the run's
    Check check;
    std::vector<std::string> tags;
    bool operator==(const Prompt&) const = default;
};

/// One request of an experiment. `prompt_id`, `seed` and `repeat` name the pair; arm and
/// concurrency name the condition.
struct Request {
    std::string id;   ///< unique in a run; also sent as X-Request-Id
    std::string arm;  ///< "deployed" or "control"
    int concurrency = 1;
    std::string phase = "level";  ///< "baseline_before", "level", "baseline_after": the same level
                                  ///< 1, told apart for drift
    std::string prompt_id;
    std::int64_t seed = 1;
    int repeat = 0;
    Api api = Api::kOpenAiChat;
    std::string model;
    std::vector<Message> messages;
    std::optional<base::Tokens> max_tokens;  ///< absent: left to the server
    std::optional<double> temperature;
    std::optional<double> top_p;
    std::vector<std::string> stop;
    bool stream = true;
    bool operator==(const Request&) const = default;
};

}  // namespace fullstop::answer
