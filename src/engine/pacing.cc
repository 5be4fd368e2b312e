// The margin is what estimates missed by lately: the surer they are, the more of the time is used.
#include "engine/pacing.h"

#include <algorithm>

#include "engine/limits.h"

namespace fullstop::engine {

base::Tokens Pacing::prompt_rows(const StepShape& step, base::Tokens position, base::Tokens most, base::Duration left, base::Tokens foreign) const {
    if (learnt_) most = std::min(most, kMostLearntRows);
    const auto budget = std::chrono::duration_cast<base::Duration>(left / (1 + cost_->spread()));
    return std::max(std::min(most, kLeastPrefillRows), cost_->largest_prefill(step, position, most, budget, foreign));
}

void Pacing::observe(const StepShape& step, base::Duration took) {
    if (!learns_ || took <= base::Duration::zero()) return;
    if (cost_) return cost_->observe(step, took);
    if (step.passes().size() == 1) seen_.push_back({.pass = step.passes().front(), .ms = base::to_ms(took)});
    if (seen_.size() < kStepsToLearn) return;
    if (auto fitted = CostModel::fit(std::exchange(seen_, {}))) {
        cost_ = std::move(*fitted);
        learnt_ = true;
    }
}

}  // namespace fullstop::engine
