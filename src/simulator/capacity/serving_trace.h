// A recorded load, to be asked again: a run document of fullstop (`fullstop.run/1`), or JSON lines
// of {"at_ms", "prompt_tokens", "output_tokens", "max_tokens"?}. Further fields are left aside.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "simulator/capacity/serving_load.h"

namespace fullstop::simulator {

/// Most requests of one load: gaps of all their tokens are kept, which at 250 tokens each is 1 GB.
/// usage error
inline constexpr std::size_t kMaxRequests = 1'000'000;
/// Most tokens of one prompt or answer: beyond the window of any model. usage error
inline constexpr std::int64_t kMaxRequestTokens = 10'000'000;

struct Trace {
    ServingLoad load;                ///< by time of arrival, the first at 0; no users
    std::vector<std::string> notes;  ///< what was left out or could not be known
};

/// Errors (usage) name `name`, and the line and field or the place in the document.
base::Result<Trace> read_trace(std::string_view text, std::string_view name);

}  // namespace fullstop::simulator
