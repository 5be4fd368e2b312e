// The margin is such that 99 of 100 steps are in time, given what estimates missed by lately: the surer they are, the more of
// the time is used.
#include "engine/pacing.h"

#include <algorithm>

#include "engine/limits.h"

namespace fullstop::engine {

/// A hundredth of a normal distribution lies above so many standard deviations.
constexpr double kOneInHundred = 2.326;

base::Tokens Pacing::prompt_rows(const StepShape& step, base::Tokens position, base::Tokens most, base::Duration left, base::Tokens foreign) const {
    const auto budget = std::chrono::duration_cast<base::Duration>(left / cost_->slack(kOneInHundred));
    return std::max(std::min(most, kLeastPrefillRows), cost_->largest_prefill(step, position, most, budget, foreign));
}

}  // namespace fullstop::engine
