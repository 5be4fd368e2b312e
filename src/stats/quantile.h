// Quantiles of a sample by linear interpolation between order statistics (method 7 of Hyndman and
// Fan 1996: R, NumPy).
#pragma once

#include <span>
#include <vector>

namespace fullstop::stats {

/// `q` in [0, 1]; `values` in any order, not empty.
double quantile(std::span<const double> values, double q);
double median(std::span<const double> values);
double mean(std::span<const double> values);

}  // namespace fullstop::stats
