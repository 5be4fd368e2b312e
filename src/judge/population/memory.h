// KV arithmetic for evidence and remedies: how many tokens the running answers held, what the pool
// offers, and which flags would have sufficed.
#pragma once

#include <optional>
#include <vector>

#include "judge/causes/claim.h"

namespace fullstop::judge {

struct Pool {
    std::int64_t tokens = 0;
    std::string how;
};

/// Tokens that all running requests share: announced, else the window when several requests run
/// beside each other in it.
std::optional<Pool> pool_of(const answer::ServerFacts* server);

/// llama.cpp rounds the context to this; a number that is not a multiple is rounded up by the
/// server anyway.
inline constexpr std::int64_t kContextStep = 256;
constexpr std::int64_t round_up(std::int64_t tokens) {
    return (tokens + kContextStep - 1) / kContextStep * kContextStep;
}

/// Tokens that one answer may come to hold: its prompt and its requested limit, else the longest
/// answer seen alone.
std::optional<std::int64_t> worst_case(const answer::Record& record, const Context& context);

/// `-c`, `-np` and max_tokens with numbers that suffice for the concurrency of `record`.
std::vector<Remedy> pool_remedies(const answer::Record& record, const Context& context);

}  // namespace fullstop::judge
