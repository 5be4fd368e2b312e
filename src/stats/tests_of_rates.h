// Is the rate of an event higher in one group than in the other? Fisher's exact test, and
// Holm's correction for asking at several levels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fullstop::stats {

struct Count {
    std::int64_t events = 0;
    std::int64_t total = 0;
};

/// Fisher's exact test, one-sided: the probability of at least `group.events` events in `group`
/// when both groups share one rate. 1 when either group is empty.
double fisher_greater(Count group, Count reference);

/// Holm's step-down correction (1979): adjusted p-values in the order given.
std::vector<double> holm(std::span<const double> p);

}  // namespace fullstop::stats
