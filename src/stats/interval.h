// Intervals that hold for small samples: exact for rates (Clopper and Pearson 1934), order
// statistics for a median, percentile bootstrap for a mean. All two-sided.
#pragma once

#include <cstdint>
#include <span>

namespace fullstop::stats {

struct Bounds {
    double low = 0;
    double high = 1;
};

/// Exact interval of a rate: `successes` of `trials`, 0 <= successes <= trials. No trials: [0, 1].
Bounds clopper_pearson(std::int64_t successes, std::int64_t trials, double confidence = 0.95);

/// Distribution-free interval of the median: the narrowest symmetric pair of order statistics whose
/// binomial coverage reaches `confidence`. Below six values none reaches 95 %: smallest and largest
/// are returned.
Bounds median_interval(std::span<const double> values, double confidence = 0.95);

/// Percentile bootstrap of the mean, `kBootstrapDraws` resamples from `seed`; the same input gives
/// the same bytes.
Bounds bootstrap_mean(std::span<const double> values, std::uint64_t seed, double confidence = 0.95);
/// The percentiles asked for lie 50 draws from the ends; more draws do not move the second digit.
inline constexpr int kBootstrapDraws = 2000;

}  // namespace fullstop::stats
