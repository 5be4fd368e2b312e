#include "stats/quantile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.h"

namespace fullstop::stats {

double quantile(std::span<const double> values, double q) {
    FULLSTOP_ASSERT(!values.empty(), "a quantile needs at least one value");
    FULLSTOP_ASSERT(q >= 0 && q <= 1, "a quantile lies between 0 and 1");
    std::vector<double> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    const double position = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(position));
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

double mean(std::span<const double> values) {
    FULLSTOP_ASSERT(!values.empty(), "a mean needs at least one value");
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace fullstop::stats
