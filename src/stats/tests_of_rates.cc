#include "stats/tests_of_rates.h"

#include <algorithm>
#include <boost/math/distributions/hypergeometric.hpp>
#include <numeric>

#include "base/assert.h"

namespace fullstop::stats {

double fisher_greater(Count group, Count reference) {
    FULLSTOP_ASSERT(group.events >= 0 && group.events <= group.total,
                    "events of a group lie between none and all");
    FULLSTOP_ASSERT(reference.events >= 0 && reference.events <= reference.total,
                    "events of a reference lie between none and all");
    const std::int64_t events = group.events + reference.events;
    const std::int64_t total = group.total + reference.total;
    if (group.total == 0 || reference.total == 0 || group.events == 0) return 1;
    const boost::math::hypergeometric_distribution<double> draws(static_cast<unsigned>(events),
                                                                 static_cast<unsigned>(group.total),
                                                                 static_cast<unsigned>(total));
    double tail = 0;
    const std::int64_t most = std::min(events, group.total);
    for (std::int64_t k = std::max(group.events, group.total + events - total); k <= most; ++k)
        tail += boost::math::pdf(draws, static_cast<double>(k));
    return std::min(tail, 1.0);
}

std::vector<double> holm(std::span<const double> p) {
    std::vector<std::size_t> order(p.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
        return p[a] < p[b] || (p[a] == p[b] && a < b);
    });
    std::vector<double> adjusted(p.size());
    double least = 0;
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
        least = std::max(least,
                         std::min(1.0, static_cast<double>(order.size() - rank) * p[order[rank]]));
        adjusted[order[rank]] = least;
    }
    return adjusted;
}

}  // namespace fullstop::stats
