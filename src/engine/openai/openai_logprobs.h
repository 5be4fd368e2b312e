// Log-probabilities in the two shapes of OpenAI's interface.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <span>

#include "engine/sampling/token_logprobs.h"

namespace fullstop::engine {

/// Of a chat choice: `content`, one object a token.
boost::json::value chat_logprobs(std::span<const ShownToken> tokens);
/// Of a text choice: four lists side by side. `offset`: characters of the answer before the first
/// token.
boost::json::value text_logprobs(std::span<const ShownToken> tokens, std::int64_t offset);
/// Characters that begin in these tokens.
std::int64_t characters_in(std::span<const ShownToken> tokens);

}  // namespace fullstop::engine
