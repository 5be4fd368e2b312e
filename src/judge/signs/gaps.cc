#include "judge/signs/gaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "judge/signs/end_kind.h"
#include "stats/quantile.h"

namespace fullstop::judge {
namespace {

/// Limits people set: client defaults and the proxies' idle timers.
constexpr std::array kIdleSeconds = {10, 30, 60, 100, 120, 300, 600};

}  // namespace

std::optional<double> longest_pause(const answer::Record& record) {
    if (record.timeline.gaps.size() < 2) return std::nullopt;
    std::vector<double> gaps;
    for (const base::Duration gap : record.timeline.gaps) gaps.push_back(base::to_ms(gap));
    const double longest = std::ranges::max(gaps);
    if (longest < kPauseMs || longest < kPauseFactor * stats::quantile(gaps, 0.95))
        return std::nullopt;
    return longest;
}

std::optional<double> longest_silence(const answer::Record& record) {
    if (!is_timed(record)) return std::nullopt;
    double longest = record.ttft() ? base::to_ms(*record.ttft()) : base::to_ms(*record.elapsed());
    for (const base::Duration gap : record.timeline.gaps)
        longest = std::max(longest, base::to_ms(gap));
    return longest;
}

std::string idle_limits_that_would_cut(const std::vector<const answer::Record*>& records,
                                       std::vector<std::string>* ids) {
    std::string text;
    for (const int seconds : kIdleSeconds) {
        std::int64_t hit = 0;
        for (const answer::Record* record : records) {
            const auto silence = longest_silence(*record);
            if (is_victim(*record) || !silence || *silence < seconds * 1000.0) continue;
            ++hit;
            if (ids != nullptr && std::ranges::find(*ids, record->request.id) == ids->end())
                ids->push_back(record->request.id);
        }
        if (hit > 0)
            text += fmt::format("{}{} s: {} of {}", text.empty() ? "" : "; ", seconds, hit,
                                records.size());
    }
    return text;
}

}  // namespace fullstop::judge
