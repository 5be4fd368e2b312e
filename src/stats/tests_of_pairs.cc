#include "stats/tests_of_pairs.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace fullstop::stats {

double sign_flip(std::span<const double> differences, std::uint64_t seed) {
    if (differences.empty()) return 1;
    const double observed = std::abs(std::accumulate(differences.begin(), differences.end(), 0.0));
    // Sums of the same numbers in another order of signs may differ in the last bit: those are
    // ties, not exceptions.
    const double tie = observed * 1e-12;
    base::Random random(seed);
    int as_extreme = 0;
    for (int draw = 0; draw < kPermutationDraws; ++draw) {
        double sum = 0;
        std::uint64_t signs = 0;
        for (std::size_t i = 0; i < differences.size(); ++i) {
            if (i % 64 == 0) signs = random.next();
            sum += (signs >> (i % 64) & 1) != 0 ? differences[i] : -differences[i];
        }
        if (std::abs(sum) >= observed - tie) ++as_extreme;
    }
    return static_cast<double>(as_extreme + 1) / static_cast<double>(kPermutationDraws + 1);
}

double sign_test(std::span<const double> differences) {
    const auto up =
        static_cast<double>(std::ranges::count_if(differences, [](double d) { return d > 0; }));
    const auto down =
        static_cast<double>(std::ranges::count_if(differences, [](double d) { return d < 0; }));
    if (up + down == 0) return 1;
    const boost::math::binomial_distribution<double> fair(up + down, 0.5);
    return std::min(1.0, 2 * boost::math::cdf(fair, std::min(up, down)));
}

}  // namespace fullstop::stats
