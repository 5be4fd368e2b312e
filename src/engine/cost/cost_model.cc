// Three fits and three factors. Factors move in logarithms, so that twice too slow and twice too
// fast weigh the same.
#include "engine/cost/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fullstop::engine {
namespace {

/// Weight of the newest step in a factor: the last twenty or so decide, which is a second of a
/// small model.
constexpr double kNewestWeight = 0.05;
/// One step that took a thousand times as long (the machine slept) is an accident, and no more than
/// this is learned from it.
constexpr double kLargestLesson = 4;
/// A factor beyond these says that the table is of another machine; it stays there.
constexpr double kLeastFactor = 1.0 / 64, kLargestFactor = 64;
/// Below this many points a class has nothing of its own to say.
constexpr std::size_t kLeastPoints = 3;
/// No pass takes less; keeps logarithms finite when every coefficient is zero.
constexpr double kLeastMs = 1e-6;

CostTerms features(const PassShape& pass) {
    return {1, static_cast<double>(pass.rows), pass.row_kv, pass.row_foreign,
            static_cast<double>(pass.outputs)};
}

}  // namespace

std::size_t CostModel::class_of(std::int64_t rows) { return rows < 2 ? 0 : rows < 64 ? 1 : 2; }

base::Result<CostModel> CostModel::fit(std::vector<CostPoint> points) {
    if (points.empty()) return base::usage_error("a cost table needs at least one measured pass");
    std::vector<CostSample> all;
    std::array<std::vector<CostSample>, kClasses> by_class;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const CostPoint& point = points[i];
        if (!std::isfinite(point.ms) || point.ms <= 0)
            return base::usage_error(
                fmt::format("point {} of the cost table has no time above zero", i));
        if (point.pass.rows < 1)
            return base::usage_error(fmt::format("point {} of the cost table has no rows", i));
        all.push_back({features(point.pass), point.ms});
        by_class[class_of(point.pass.rows)].push_back(all.back());
    }
    CostModel model;
    model.points_ = std::move(points);
    for (std::size_t i = 0; i < kClasses; ++i)
        model.coefficients_[i] =
            fit_non_negative(by_class[i].size() < kLeastPoints ? all : by_class[i]);
    model.squared_miss_ = model.fit_noise() * model.fit_noise();
    return model;
}

double CostModel::fitted_ms(const PassShape& pass) const {
    return std::max(kLeastMs, dot(coefficients_[class_of(pass.rows)], features(pass)));
}

base::Duration CostModel::estimate(const StepShape& step) const {
    double ms = 0;
    for (const PassShape& pass : step.passes()) ms += estimated_ms(pass);
    return base::from_ms(ms);
}

base::Tokens CostModel::largest_prefill(const StepShape& step, base::Tokens position,
                                        base::Tokens most, base::Duration budget,
                                        base::Tokens foreign) const {
    for (std::int64_t rows = most.count; rows > 0; --rows) {
        StepShape with = step;
        with.add(rows_at(position, rows, true, foreign));
        if (estimate(with) <= budget) return {rows};
    }
    return {};
}

void CostModel::observe(const StepShape& step, base::Duration took) {
    std::array<double, kClasses> ms{};
    double all = 0;
    for (const PassShape& pass : step.passes()) {
        const double estimated = estimated_ms(pass);
        ms[class_of(pass.rows)] += estimated;
        all += estimated;
    }
    if (all <= 0 || took <= base::Duration{}) return;
    const double miss = std::clamp(std::log(base::to_ms(took) / all), -std::log(kLargestLesson),
                                   std::log(kLargestLesson));
    squared_miss_ += kNewestWeight * (miss * miss - squared_miss_);
    for (std::size_t i = 0; i < kClasses; ++i)
        factors_[i] = std::clamp(factors_[i] * std::exp(kNewestWeight * miss * ms[i] / all),
                                 kLeastFactor, kLargestFactor);
}

double CostModel::slack(double deviations) const {
    return std::exp(deviations * std::sqrt(squared_miss_));
}

double CostModel::fit_error() const {
    double sum = 0;
    for (const CostPoint& point : points_) sum += std::abs(fitted_ms(point.pass) / point.ms - 1);
    return sum / static_cast<double>(points_.size());
}

double CostModel::fit_noise() const {
    double sum = 0;
    for (const CostPoint& point : points_) {
        const double miss = std::log(point.ms / fitted_ms(point.pass));
        sum += miss * miss;
    }
    return std::sqrt(sum / static_cast<double>(points_.size()));
}

}  // namespace fullstop::engine
