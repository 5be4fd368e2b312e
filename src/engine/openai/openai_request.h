// From the JSON body of a chat or text completion to what the engine is asked. A parameter that is
// not honoured is an error that names it; nothing is ignored or adjusted.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "engine/answer_end.h"

namespace fullstop::engine {

enum class Route { kChat, kText };

struct CompletionRequest {
    Route route = Route::kChat;
    std::string model;  ///< "" when not given
    bool stream = false;
    bool include_usage = false;
    bool wants_logprobs = false;
    std::optional<int> top_logprobs;
    Submission submission;              ///< id and arrival are the caller's to fill in
    std::optional<std::uint64_t> seed;  ///< absent: the caller chooses one
};

/// A 400 in the making.
struct BadRequest {
    std::string message;
    std::string parameter;  ///< "" when it is not one parameter's fault
};

std::expected<CompletionRequest, BadRequest> parse_completion(Route route, std::string_view body);

}  // namespace fullstop::engine
