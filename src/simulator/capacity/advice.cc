// Which setting would do: the smallest pool that keeps what was asked in every load of the sweep,
// and of its modes of admission the one that serves most.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "simulator/capacity/sweep.h"

namespace fullstop::simulator {
namespace {

/// Without targets: so close to the best throughput and the shortest wait is as good, for half the
/// memory.
constexpr double kCloseThroughput = 0.95, kCloseWait = 1.25;

using Choice = std::pair<base::Tokens, engine::AdmissionMode>;

struct Load {
    double best_tokens_per_s = 0;
    double least_ttft_ms = std::numeric_limits<double>::infinity();
};

bool all_whole(const SweepRow& row) {
    return row.finished && row.summary.whole == row.summary.requests;
}

/// What keeps `row` from doing; "" when nothing.
std::string obstacle(const SweepRow& row, const Targets& targets, const Load& load) {
    const ServingSummary& s = row.summary;
    if (!row.finished) return "was not simulated to its end";
    if (s.whole < s.requests)
        return fmt::format("{} of {} answers are not whole", s.requests - s.whole, s.requests);
    const double ttft = s.ttft_ms ? s.ttft_ms->p99 : 0, itl = s.itl_ms ? s.itl_ms->p99 : 0;
    if (targets.ttft_ms && ttft > *targets.ttft_ms)
        return fmt::format("first token p99 {:.0f} ms", ttft);
    if (targets.itl_ms && itl > *targets.itl_ms) return fmt::format("gap p99 {:.0f} ms", itl);
    if (targets.ttft_ms || targets.itl_ms) return {};
    if (s.tokens_per_s < kCloseThroughput * load.best_tokens_per_s)
        return fmt::format("{:.0f} of {:.0f} tokens/s", s.tokens_per_s, load.best_tokens_per_s);
    if (ttft > kCloseWait * load.least_ttft_ms)
        return fmt::format("first token p99 {:.0f} ms, {:.0f} ms elsewhere", ttft,
                           load.least_ttft_ms);
    return {};
}

std::string rule(const Targets& targets) {
    std::string text = "every answer is whole";
    if (targets.ttft_ms)
        text += fmt::format(", the first token comes within {:.0f} ms (p99)", *targets.ttft_ms);
    if (targets.itl_ms)
        text += fmt::format(", the next one within {:.0f} ms (p99)", *targets.itl_ms);
    if (!targets.ttft_ms && !targets.itl_ms)
        text += fmt::format(
            ", and throughput and p99 of the first token are within {:.0f} % and {:.0f} % of the "
            "best setting of the same load",
            100 - 100 * kCloseThroughput, 100 * kCloseWait - 100);
    return text;
}

}  // namespace

Advice advise(const std::vector<SweepRow>& rows, const Targets& targets) {
    std::map<std::int64_t, Load> loads;
    for (const SweepRow& row : rows) {
        if (!all_whole(row) || !row.summary.ttft_ms) continue;
        Load& load = loads[row.setting.users.value_or(0)];
        load.best_tokens_per_s = std::max(load.best_tokens_per_s, row.summary.tokens_per_s);
        load.least_ttft_ms = std::min(load.least_ttft_ms, row.summary.ttft_ms->p99);
    }
    struct Judged {
        double tokens_per_s = 0;
        std::string obstacle;
    };
    std::map<Choice, Judged> choices;  // by pool, then admission
    for (const SweepRow& row : rows) {
        Judged& judged = choices[{row.setting.pool, row.setting.admission}];
        judged.tokens_per_s += row.summary.tokens_per_s;
        if (!judged.obstacle.empty()) continue;
        judged.obstacle = obstacle(row, targets, loads[row.setting.users.value_or(0)]);
        if (!judged.obstacle.empty() && row.setting.users)
            judged.obstacle += fmt::format(" with {} users", *row.setting.users);
    }
    const Choice* best = nullptr;
    for (const auto& [choice, judged] : choices) {
        if (!judged.obstacle.empty() || (best != nullptr && best->first != choice.first)) continue;
        if (best == nullptr || judged.tokens_per_s > choices[*best].tokens_per_s) best = &choice;
    }
    if (best != nullptr)
        return {
            .pool = best->first,
            .admission = best->second,
            .text = fmt::format("--kv-tokens {} --admission {} would do: {}.", best->first.count,
                                engine::to_string(best->second), rule(targets))};
    if (choices.empty()) return {.pool = {}, .admission = {}, .text = "Nothing was simulated."};
    const auto& [largest, judged] = *choices.rbegin();
    return {.pool = {},
            .admission = {},
            .text = fmt::format(
                "No setting of this sweep would do, if {}: with --kv-tokens {} --admission {}, {}.",
                rule(targets), largest.first.count, engine::to_string(largest.second),
                judged.obstacle)};
}

}  // namespace fullstop::simulator
