// The same fit as for passes, with two terms. A copy that was too short to be timed counts as a
// microsecond.
#include "engine/cost/swap_cost.h"

#include <algorithm>
#include <utility>

#include "engine/cost/cost_fit.h"

namespace fullstop::engine {
namespace {

constexpr double kLeastMs = 1e-3;

}  // namespace

SwapCost::SwapCost(std::vector<SwapPoint> points)
    : points_(std::move(points)),
      out_(fit(points_, &SwapPoint::out_ms)),
      in_(fit(points_, &SwapPoint::in_ms)) {}

SwapCost::Line SwapCost::fit(std::span<const SwapPoint> points, double SwapPoint::* ms) {
    std::vector<CostSample> samples;
    for (const SwapPoint& point : points)
        samples.push_back({.features = {1, static_cast<double>(point.tokens.count), 0, 0, 0},
                           .ms = std::max(kLeastMs, point.*ms)});
    const CostTerms terms = fit_non_negative(samples);
    return {.base_ms = terms[0], .token_ms = terms[1]};
}

}  // namespace fullstop::engine
