// How long a step will take on this machine: measured once, corrected as it runs.
//
// T(pass) = a + b·rows + c·Σ row·kv + d·Σ row·foreign + e·outputs, with coefficients of its own for
// each class of row counts, because libllama chooses other kernels for one row, for a few and for
// many (64 rows may be faster than 63). T(step) is the sum over its passes. Fitted to measured
// passes; while steps run, one factor a class follows what they really take.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "base/units.h"
#include "engine/cost/cost_fit.h"
#include "engine/cost/step_shape.h"

namespace fullstop::engine {

/// A measured pass.
struct CostPoint {
    PassShape pass;
    double ms = 0;
};

class CostModel {
public:
    /// 1, 2 to 63, and 64 rows or more.
    static constexpr std::size_t kClasses = 3;
    static std::size_t class_of(std::int64_t rows);

    /// Errors (usage) when there is nothing to fit: no point, or one without a time. A class with
    /// fewer points than coefficients that matter is fitted to all points.
    static base::Result<CostModel> fit(std::vector<CostPoint> points);

    base::Duration estimate(const StepShape& step) const;
    /// Most rows, up to `most`, of a prompt with `position` tokens in KV that can be computed
    /// beside `step` within `budget`; 0 when there are none. Not the first number that is too slow:
    /// more rows may take less time. `foreign` as in rows_at().
    base::Tokens largest_prefill(const StepShape& step, base::Tokens position, base::Tokens most,
                                 base::Duration budget, base::Tokens foreign = {}) const;

    /// A step of this shape took `took`: what it says of each class counts by that class's share of
    /// the step.
    void observe(const StepShape& step, base::Duration took);
    /// By what factor a step exceeds its estimate that is so many standard deviations too slow,
    /// from what was observed lately; before anything was, from what the fit left over. Misses are
    /// taken as lognormal. 1 and above.
    double slack(double deviations) const;

    /// Mean absolute relative error of the estimates over the measured passes, 0.1 is one tenth.
    double fit_error() const;
    /// Standard deviation of log(measured / estimated) over the measured passes: noise for a
    /// simulation.
    double fit_noise() const;

    std::span<const CostPoint> points() const { return points_; }
    const std::array<CostTerms, kClasses>& coefficients() const { return coefficients_; }
    /// What estimates are multiplied by, by class: 1 until something was observed.
    const std::array<double, kClasses>& factors() const { return factors_; }

private:
    double fitted_ms(const PassShape& pass) const;
    double estimated_ms(const PassShape& pass) const {
        return fitted_ms(pass) * factors_[class_of(pass.rows)];
    }

    std::vector<CostPoint> points_;
    std::array<CostTerms, kClasses> coefficients_{};
    std::array<double, kClasses> factors_ = {1, 1, 1};
    double squared_miss_ = 0;  ///< running mean of log(took / estimated)²
};

}  // namespace fullstop::engine
