// Shortening that nobody labels: answers that look finished, tested with three witnesses that do
// not trust the finish reason (prefix, ending, coverage), each against the baseline's own rate
// (10.5.2 of the method).
#pragma once

#include <string>
#include <vector>

#include "judge/levels/level.h"

namespace fullstop::judge {

struct Witness {
    std::string name;
    double p = 1;  ///< one-sided, not yet corrected
    std::int64_t events = 0, total = 0;
    std::int64_t baseline_events = 0, baseline_total = 0;
    std::vector<const Judged*> answers;
    std::string text;
};

/// Always three: prefix, ending, coverage; p = 1 where a witness cannot speak.
std::vector<Witness> witnesses(const Level& level, const Level& baseline);

}  // namespace fullstop::judge
