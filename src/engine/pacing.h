// How many prompt rows a step may compute, so that those who wait for their next token get it in time.
//
// With a target for inter-token latency the rows follow from what a step costs on this machine: a measured table if there
// is one, else the steps seen so far. Without a target, and until enough was seen, a fixed number is used.
#pragma once

#include <optional>
#include <vector>

#include "engine/cost_model.h"

namespace fullstop::engine {

class Pacing {
public:
    /// `learns`: what steps cost is wanted even without a target for inter-token latency.
    Pacing(std::optional<base::Duration> itl_target, std::optional<CostModel> cost, bool learns = false)
        : itl_target_(itl_target), cost_(std::move(cost)), learns_(learns || itl_target.has_value()) {}

    /// There is a target and it is known what steps cost.
    bool knows() const { return itl_target_ && cost_; }
    /// What steps cost; null while that is not known.
    const CostModel* cost() const { return cost_ ? &*cost_ : nullptr; }
    /// For one who knows: rows, up to `most`, of a prompt with `position` tokens in KV beside `step`, whose time is up after
    /// `left`. `foreign`: tokens of others in KV. At least kLeastPrefillRows while there are as many: a prompt never stands still.
    base::Tokens prompt_rows(const StepShape& step, base::Tokens position, base::Tokens most, base::Duration left, base::Tokens foreign) const;
    /// A step of this shape took `took`.
    void observe(const StepShape& step, base::Duration took);

private:
    std::optional<base::Duration> itl_target_;
    std::optional<CostModel> cost_;
    bool learns_;
    bool learnt_ = false;          ///< the model is of the steps seen, and knows nothing of many rows at once
    std::vector<CostPoint> seen_;  ///< steps of one pass, until there is a model
};

}  // namespace fullstop::engine
