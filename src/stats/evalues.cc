#include "stats/evalues.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/assert.h"

namespace fullstop::stats {
namespace {

struct Bet {
    double rate, weight;
};

constexpr std::array kLosses = {Bet{0.06, 0.25}, Bet{0.12, 0.35}, Bet{0.25, 0.20}, Bet{0.5, 0.15},
                                Bet{0.9, 0.05}};
constexpr std::array kAlone = {Bet{0.001, 0.60}, Bet{0.03, 0.25}, Bet{0.1, 0.15}};
constexpr std::array kFlips = {Bet{0.25, 0.3}, Bet{0.5, 0.4}, Bet{0.9, 0.3}};
constexpr std::array kBelow = {Bet{0, 0.65}, Bet{0.01, 0.15}, Bet{0.03, 0.10}, Bet{0.1, 0.10}};
/// Share of the wealth that stands on each score.
constexpr std::array kStakes = {Bet{0.4, 0.3}, Bet{0.7, 0.4}, Bet{0.95, 0.3}};

constexpr double kToleratedLosses = 0.01;
constexpr double kToleratedFlips = 0.1;
/// A loaded rate worth a bet lies this far above the one alone.
constexpr double kLeastRatio = 2.5;
constexpr double kBoundWealth = 20;  ///< 95 %

/// log(exp(a) + exp(b) + ...) without overflow.
double log_sum(std::span<const double> logs) {
    const double most = *std::ranges::max_element(logs);
    if (std::isinf(most)) return most;
    double sum = 0;
    for (const double one : logs) sum += std::exp(one - most);
    return most + std::log(sum);
}

/// log of (rate / tolerated)^events x ((1 - rate) / (1 - tolerated))^(total - events).
double log_ratio(Count count, double rate, double tolerated) {
    double log = 0;
    if (count.events > 0) log += static_cast<double>(count.events) * std::log(rate / tolerated);
    if (count.total > count.events)
        log += static_cast<double>(count.total - count.events) *
               (std::log1p(-rate) - std::log1p(-tolerated));
    return log;
}

template <std::size_t N>
double mixture(Count count, const std::array<Bet, N>& bets, double tolerated) {
    FULLSTOP_ASSERT(count.events >= 0 && count.events <= count.total,
                    "events lie between none and all");
    std::array<double, N> logs{};
    for (std::size_t i = 0; i < N; ++i)
        logs[i] = std::log(bets[i].weight) + log_ratio(count, bets[i].rate, tolerated);
    return std::exp(log_sum(logs));
}

/// The wealth against a rate of `p`.
double wealth_against(double p, Count lost) {
    double wealth = 0;
    for (const Bet& bet : kBelow)
        if (bet.rate < p && (bet.rate > 0 || lost.events == 0))
            wealth += bet.weight * std::exp(log_ratio(lost, bet.rate, p));
    return wealth;
}

}  // namespace

double rate_evalue(Count lost) { return mixture(lost, kLosses, kToleratedLosses); }

double highest_rate_evalue(std::span<const char> lost) {
    double highest = 1;
    Count count;
    for (const char event : lost) {
        ++count.total;
        if (event == 0) continue;  // the wealth grows with events only
        ++count.events;
        highest = std::max(highest, rate_evalue(count));
    }
    return highest;
}

double pair_evalue(std::int64_t alone, std::int64_t loaded, std::int64_t pairs) {
    FULLSTOP_ASSERT(alone >= 0 && loaded >= 0 && alone <= pairs && loaded <= pairs,
                    "events lie between none and all");
    std::vector<double> logs;
    double weights = 0;
    for (const Bet& a : kAlone)
        for (const Bet& c : kLosses) {
            if (c.rate <= kLeastRatio * a.rate) continue;
            const double middle = (a.rate + c.rate) / 2, weight = a.weight * c.weight;
            weights += weight;
            logs.push_back(std::log(weight) + log_ratio({alone, pairs}, a.rate, middle) +
                           log_ratio({loaded, pairs}, c.rate, middle));
        }
    return std::exp(log_sum(logs) - std::log(weights));
}

double rate_bound(Count lost) {
    if (lost.total == 0 || lost.events >= lost.total) return 1;
    double low = static_cast<double>(lost.events) / static_cast<double>(lost.total), high = 1;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (wealth_against(middle, lost) < kBoundWealth ? low : high) = middle;
    }
    return high;
}

double highest_score_evalue(std::span<const double> scores) {
    std::array<double, kStakes.size()> logs{};
    for (std::size_t i = 0; i < kStakes.size(); ++i) logs[i] = std::log(kStakes[i].weight);
    double highest = 0;
    for (const double score : scores) {
        for (std::size_t i = 0; i < kStakes.size(); ++i)
            logs[i] += std::log1p(kStakes[i].rate * score);
        highest = std::max(highest, log_sum(logs));
    }
    return std::exp(highest);
}

double flip_evalue(Count stopped_first) { return mixture(stopped_first, kFlips, kToleratedFlips); }

}  // namespace fullstop::stats
