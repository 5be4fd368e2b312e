#include "stats/interval.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <vector>

#include "base/assert.h"
#include "base/random.h"
#include "stats/quantile.h"

namespace fullstop::stats {

Bounds clopper_pearson(std::int64_t successes, std::int64_t trials, double confidence) {
    FULLSTOP_ASSERT(successes >= 0 && successes <= trials, "a rate lies between none and all");
    if (trials == 0) return {0, 1};
    using Binomial = boost::math::binomial_distribution<double>;
    const double tail = (1 - confidence) / 2;
    const auto n = static_cast<double>(trials);
    const auto k = static_cast<double>(successes);
    return {successes == 0 ? 0 : Binomial::find_lower_bound_on_p(n, k, tail),
            successes == trials ? 1 : Binomial::find_upper_bound_on_p(n, k, tail)};
}

Bounds median_interval(std::span<const double> values, double confidence) {
    FULLSTOP_ASSERT(!values.empty(), "a median needs at least one value");
    std::vector<double> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    const std::size_t n = sorted.size();
    const boost::math::binomial_distribution<double> half(static_cast<double>(n), 0.5);
    std::size_t rank = 0;  // values outside on each side
    while (rank + 1 < (n + 1) / 2 &&
           boost::math::cdf(half, static_cast<double>(rank)) <= (1 - confidence) / 2)
        ++rank;
    if (rank > 0) --rank;
    return {sorted[rank], sorted[n - 1 - rank]};
}

Bounds bootstrap_mean(std::span<const double> values, std::uint64_t seed, double confidence) {
    FULLSTOP_ASSERT(!values.empty(), "a mean needs at least one value");
    base::Random random(seed);
    std::vector<double> means;
    means.reserve(kBootstrapDraws);
    for (int draw = 0; draw < kBootstrapDraws; ++draw) {
        double sum = 0;
        for (std::size_t i = 0; i < values.size(); ++i) sum += values[random.below(values.size())];
        means.push_back(sum / static_cast<double>(values.size()));
    }
    const double tail = (1 - confidence) / 2;
    return {quantile(means, tail), quantile(means, 1 - tail)};
}

}  // namespace fullstop::stats
