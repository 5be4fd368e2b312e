// Non-negative least squares for a handful of coefficients, exactly: every subset of them is tried,
// the others being zero. A step never takes less time for more work, so a negative coefficient is
// noise and would mislead where nothing was measured.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace fullstop::engine {

/// Features of a pass: one, rows, Σ row·kv, Σ row·foreign, outputs.
inline constexpr std::size_t kCostTerms = 5;
using CostTerms = std::array<double, kCostTerms>;

struct CostSample {
    CostTerms features{};
    double ms = 0;  ///< above zero
};

/// Coefficients >= 0 with the least sum of squared *relative* errors, so that short steps count as
/// much as long ones. All zero without samples.
CostTerms fit_non_negative(std::span<const CostSample> samples);

double dot(const CostTerms& a, const CostTerms& b);

}  // namespace fullstop::engine
