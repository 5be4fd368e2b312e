// The margin is three deviations of what estimates missed by lately: the surer they are, the more
// of the time is used. One step of a hundred may be late, and what is missed is no normal
// distribution.
#include "engine/scheduling/pacing.h"

#include <algorithm>

#include "engine/limits.h"

namespace fullstop::engine {

constexpr double kDeviations = 3;

base::Tokens Pacing::prompt_rows(const StepShape& step, base::Tokens position, base::Tokens most,
                                 base::Duration left, base::Tokens foreign) const {
    const auto budget =
        std::chrono::duration_cast<base::Duration>(left / cost_->slack(kDeviations));
    return std::max(std::min(most, kLeastPrefillRows),
                    cost_->largest_prefill(step, position, most, budget, foreign));
}

}  // namespace fullstop::engine
