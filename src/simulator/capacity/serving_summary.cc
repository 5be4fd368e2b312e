// One pass over the answers, quantiles as everywhere else (stats/quantile.h).
#include "simulator/capacity/serving_summary.h"

#include <algorithm>
#include <vector>

#include "stats/quantile.h"

namespace fullstop::simulator {
namespace {

std::optional<Spread> spread_of(const std::vector<double>& values) {
    if (values.empty()) return std::nullopt;
    return Spread{.p50 = stats::quantile(values, 0.5),
                  .p99 = stats::quantile(values, 0.99),
                  .max = *std::ranges::max_element(values)};
}

}  // namespace

ServingSummary summarize(const ServingRun& run) {
    ServingSummary summary;
    std::vector<double> ttft_ms;
    for (const ServedAnswer& answer : run.answers()) {
        if (answer.first) {
            ttft_ms.push_back(base::to_ms(*answer.first - answer.arrived));
            summary.longest_silence_ms = std::max(
                {summary.longest_silence_ms, ttft_ms.back(), base::to_ms(answer.longest_gap)});
        }
        if (!answer.ended) continue;
        ++summary.requests;
        ++(answer.refused ? summary.refused : answer.whole() ? summary.whole : summary.failed);
        summary.output_tokens += answer.whole() ? answer.tokens.count : 0;
        summary.preempted_answers += answer.pauses() > 0 ? 1 : 0;
        summary.longest_pause_ms = std::max(summary.longest_pause_ms, base::to_ms(answer.paused));
    }
    summary.ttft_ms = spread_of(ttft_ms);
    summary.itl_ms = spread_of({run.gaps_ms().begin(), run.gaps_ms().end()});
    summary.elapsed = run.now();
    if (summary.elapsed > base::Duration{})
        summary.tokens_per_s =
            static_cast<double>(summary.output_tokens) / base::to_seconds(summary.elapsed);
    const auto occupancy = run.occupancy();
    summary.swaps = occupancy.swaps;
    summary.recomputes = occupancy.recomputes;
    summary.steps = occupancy.steps;
    summary.kv_utilisation = run.kv_utilisation();
    summary.rows = run.rows();
    return summary;
}

}  // namespace fullstop::simulator
