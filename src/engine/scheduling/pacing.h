// How many prompt rows a step may compute, so that those who wait for their next token get it in
// time.
//
// With a target for inter-token latency the rows follow from what steps cost on this machine.
// Without a target, or when nobody measured that, a fixed number is used.
#pragma once

#include <optional>
#include <utility>

#include "engine/cost/cost_model.h"

namespace fullstop::engine {

class Pacing {
public:
    Pacing(std::optional<base::Duration> itl_target, std::optional<CostModel> cost)
        : itl_target_(itl_target), cost_(std::move(cost)) {}

    /// There is a target and it is known what steps cost.
    bool knows() const { return itl_target_ && cost_; }
    /// What steps cost; null when that is not known.
    const CostModel* cost() const { return cost_ ? &*cost_ : nullptr; }
    /// For one who knows: rows, up to `most`, of a prompt with `position` tokens in KV beside
    /// `step`, whose time is up after `left`. `foreign`: tokens of others in KV. At least
    /// kLeastPrefillRows while there are as many: a prompt never stands still.
    base::Tokens prompt_rows(const StepShape& step, base::Tokens position, base::Tokens most,
                             base::Duration left, base::Tokens foreign) const;
    /// A step of this shape took `took`.
    void observe(const StepShape& step, base::Duration took) {
        if (cost_) cost_->observe(step, took);
    }

private:
    std::optional<base::Duration> itl_target_;
    std::optional<CostModel> cost_;
};

}  // namespace fullstop::engine
