// Slower than alone beyond the baseline's own spread? TTFT, gap between tokens and time per token,
// each answer against the same (prompt, seed) alone. Says nothing about length.
#pragma once

#include <optional>
#include <string>

#include "judge/levels/level.h"

namespace fullstop::judge {

struct Slowdown {
    std::string measure;  ///< "time to first token"
    double ratio = 1;     ///< median of level over alone
    double p = 1;
    std::string text;
};

/// The clearest slowdown, when one is beyond noise.
std::optional<Slowdown> slowdown(const Level& level, const Level& baseline);

/// The baseline after the load was another one than before: ratio of time per token, when beyond
/// noise.
std::optional<Slowdown> drift(const Level& baseline);

}  // namespace fullstop::judge
