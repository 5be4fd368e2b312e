#include "judge/levels/latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <vector>

#include "judge/signs/end_kind.h"
#include "stats/quantile.h"
#include "stats/tests_of_pairs.h"

namespace fullstop::judge {
namespace {

using answer::Record;

/// A median change below this is not worth a verdict whatever its p-value.
constexpr double kLeastRatio = 1.1;
constexpr double kAlpha = 0.01;
/// A machine that became this much slower or faster between the two baselines measures itself, not
/// the load.
constexpr double kDriftRatio = 1.5;

struct Measure {
    std::string_view name;
    std::function<std::optional<double>(const Record&)> value;
};

std::optional<double> ttft(const Record& record) {
    return record.ttft() ? std::optional(base::to_ms(*record.ttft())) : std::nullopt;
}

std::optional<double> gap(const Record& record) {
    if (record.timeline.gaps.empty()) return std::nullopt;
    double sum = 0;
    for (const base::Duration one : record.timeline.gaps) sum += base::to_ms(one);
    return sum / static_cast<double>(record.timeline.gaps.size());
}

std::optional<double> per_token(const Record& record) {
    const auto length = record.length_tokens();
    if (!is_timed(record) || !length || *length < 1) return std::nullopt;
    return base::to_ms(*record.elapsed()) / static_cast<double>(*length);
}

const std::array<Measure, 3>& measures() {
    static const std::array<Measure, 3> all = {Measure{"time to first token", ttft},
                                               Measure{"gap between tokens", gap},
                                               Measure{"time per token", per_token}};
    return all;
}

std::vector<double> values(const std::vector<const Record*>& records, const Measure& measure) {
    std::vector<double> result;
    for (const Record* record : records)
        if (const auto value = measure.value(*record); value && *value > 0)
            result.push_back(*value);
    return result;
}

/// 95th percentile of a repeat's distance (as a log ratio) from the median of its pair.
double spread(const Level& baseline, const Measure& measure) {
    std::vector<double> distances;
    for (const Judged& answer : baseline.answers) {
        const std::vector<double> pair = values(answer.baselines, measure);
        const auto own = measure.value(*answer.record);
        if (pair.size() >= 2 && own && *own > 0)
            distances.push_back(std::abs(std::log(*own / stats::median(pair))));
    }
    return distances.empty() ? 0 : stats::quantile(distances, 0.95);
}

/// Log ratios, by answer of the second baseline.
std::vector<double> after_over_before(const Level& baseline, const Measure& measure) {
    std::vector<double> ratios;
    for (const Judged& answer : baseline.answers) {
        if (answer.record->request.phase != "baseline_after") continue;
        std::vector<const Record*> earlier;
        std::ranges::copy_if(answer.baselines, std::back_inserter(earlier), [](const Record* one) {
            return one->request.phase == "baseline_before";
        });
        const std::vector<double> before = values(earlier, measure);
        const auto after = measure.value(*answer.record);
        if (!before.empty() && after && *after > 0)
            ratios.push_back(std::log(*after / stats::median(before)));
    }
    return ratios;
}

}  // namespace

std::optional<Slowdown> slowdown(const Level& level, const Level& baseline) {
    std::optional<Slowdown> clearest;
    for (const Measure& measure : measures()) {
        std::vector<double> ratios;
        for (const Judged& answer : level.answers) {
            const std::vector<double> alone = values(answer.baselines, measure);
            const auto here = measure.value(*answer.record);
            if (!alone.empty() && here && *here > 0)
                ratios.push_back(std::log(*here / stats::median(alone)));
        }
        if (ratios.size() < 4) continue;
        const double middle = stats::median(ratios);
        const double p = stats::sign_test(ratios);
        if (middle <= std::max(std::log(kLeastRatio), spread(baseline, measure)) || p >= kAlpha)
            continue;
        if (clearest && clearest->ratio >= std::exp(middle)) continue;
        clearest = Slowdown{
            std::string(measure.name), std::exp(middle), p,
            fmt::format("{} is {:.1f} times that of one user (median of {} answers, p = {:.2g})",
                        measure.name, std::exp(middle), ratios.size(), p)};
    }
    return clearest;
}

std::optional<Slowdown> drift(const Level& baseline) {
    // Of streams the pause between tokens: a server that remembers a prompt answers it sooner the
    // second time, and that is no drift of the machine. A reply in one piece has only its whole
    // time.
    for (const Measure& measure : {measures()[1], measures()[2]}) {
        const std::vector<double> ratios = after_over_before(baseline, measure);
        if (ratios.size() < 4) continue;
        const double ratio = std::exp(stats::median(ratios)), p = stats::sign_test(ratios);
        if (p >= kAlpha || (ratio < kDriftRatio && ratio > 1 / kDriftRatio)) return std::nullopt;
        return Slowdown{std::string(measure.name), ratio, p,
                        fmt::format("one user's {} changed by a factor of {:.1f} between the "
                                    "baselines before and after (p = {:.2g})",
                                    measure.name, ratio, p)};
    }
    return std::nullopt;
}

}  // namespace fullstop::judge
