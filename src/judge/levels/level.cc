#include "judge/levels/level.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "judge/population/readings.h"
#include "judge/signs/end_kind.h"
#include "stats/interval.h"
#include "stats/quantile.h"
#include "stats/tests_of_pairs.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Effect;
using answer::Layer;
using answer::Record;

std::optional<Quantiles> quantiles(const std::vector<double>& values) {
    if (values.empty()) return std::nullopt;
    return Quantiles{stats::quantile(values, 0.5), stats::quantile(values, 0.95),
                     stats::quantile(values, 0.99), stats::quantile(values, 1),
                     static_cast<std::int64_t>(values.size())};
}

void measure_times(LevelJudgement& result, const Level& level) {
    std::vector<double> ttft, itl, queue, elapsed;
    for (const Judged& answer : level.answers) {
        const Record& record = *answer.record;
        if (record.ttft()) ttft.push_back(base::to_ms(*record.ttft()));
        if (record.elapsed()) elapsed.push_back(base::to_ms(*record.elapsed()));
        if (record.queue_ms) queue.push_back(*record.queue_ms);
        for (const base::Duration gap : record.timeline.gaps) itl.push_back(base::to_ms(gap));
    }
    result.ttft_ms = quantiles(ttft);
    result.itl_ms = quantiles(itl);
    result.queue_ms = quantiles(queue);
    result.elapsed_ms = quantiles(elapsed);
}

void count_fates(LevelJudgement& result, const Level& level) {
    for (const Judged& answer : level.answers) {
        ++result.answers;
        switch (fate_of(answer)) {
            case Fate::kNatural: ++result.natural; break;
            case Fate::kLimited: ++result.limited; break;
            case Fate::kCut: ++result.cut; break;
            case Fate::kRefused: ++result.refused; break;
            case Fate::kFailed: ++result.failed; break;
        }
    }
    const std::int64_t whole = result.natural + result.limited,
                       telling = result.answers - result.failed;
    if (telling == 0) return;
    const auto bounds = stats::clopper_pearson(whole, telling);
    result.completion_rate = Interval{static_cast<double>(whole) / static_cast<double>(telling),
                                      bounds.low, bounds.high};
}

void measure_lengths(LevelJudgement& result, const Level& level, std::uint64_t seed) {
    std::vector<double> lengths, coverages;
    for (const Judged& answer : level.answers) {
        if (fate_of(answer) == Fate::kFailed) continue;
        if (const auto length = answer.record->length_tokens())
            lengths.push_back(static_cast<double>(*length));
        if (answer.conclusion.finding.coverage)
            coverages.push_back(*answer.conclusion.finding.coverage);
    }
    if (!lengths.empty()) {
        result.output_tokens_p50 = stats::median(lengths);
        result.output_tokens_mean = stats::mean(lengths);
    }
    if (!coverages.empty()) {
        const auto bounds = stats::bootstrap_mean(coverages, seed);
        result.coverage = Interval{stats::mean(coverages), bounds.low, bounds.high};
    }
    const std::vector<double> ratios = length_log_ratios(level);
    if (level.concurrency == 1 || ratios.empty()) return;
    const auto bounds = stats::median_interval(ratios);
    result.paired_length =
        PairedLength{std::exp(stats::median(ratios)), std::exp(bounds.low), std::exp(bounds.high),
                     stats::sign_flip(ratios, seed), static_cast<std::int64_t>(ratios.size())};
}

void measure_server(LevelJudgement& result, const Level& level, const answer::Run& run,
                    const std::string& arm) {
    const LevelReadings readings = readings_of(run, arm, level.concurrency);
    if (readings.preemptions)
        result.preemptions = answer::Fact<std::int64_t>::reported(
            *readings.preemptions, "increases of the server's counter while these answers ran");
    else if (std::ranges::any_of(run.samples, [](const answer::Sample& sample) {
                 return sample.preemptions.has_value();
             }))
        result.preemptions = answer::Fact<std::int64_t>::unavailable(
            "the server's counter was not read before and after these answers");
    if (readings.free_bytes)
        result.memory_free_bytes_min =
            answer::Fact<base::Bytes>::measured({static_cast<std::int64_t>(*readings.free_bytes)},
                                                "MemAvailable, smallest of the readings");
    const std::optional<double> used = readings.kv_used;
    const auto server = run.server_before.find(arm);
    if (used && server != run.server_before.end() && server->second.pool &&
        server->second.kv_bytes_per_token)
        result.kv_bytes_peak = answer::Fact<base::Bytes>::derived(
            {static_cast<std::int64_t>(
                *used * static_cast<double>((*server->second.pool).count *
                                            (*server->second.kv_bytes_per_token).count))},
            "largest share of the pool x pool x bytes per token");
}

}  // namespace

Fate fate_of(const Judged& answer) {
    const Finding& finding = answer.conclusion.finding;
    if (answer.record->end.transport == answer::Transport::kRefused) return Fate::kRefused;
    switch (finding.cause) {
        case Cause::kMeasurementArtefact:
        case Cause::kClientCancelled: return Fate::kFailed;
        case Cause::kTokenLimit: return Fate::kLimited;
        case Cause::kUnexplained:
            return looks_natural(*answer.record) && !finding.shortened.value_or(false)
                       ? Fate::kNatural
                       : Fate::kCut;
        case Cause::kClientMisread:
        case Cause::kNumericDivergence:
        case Cause::kPromptTruncated: return Fate::kNatural;
        default: break;
    }
    switch (answer::entry(finding.cause).effect) {
        case Effect::kComplete: return Fate::kNatural;
        case Effect::kAskedFor: return Fate::kLimited;
        case Effect::kRefused: return Fate::kRefused;
        case Effect::kShortened: return Fate::kCut;
        case Effect::kUndecided: break;
    }
    return Fate::kNatural;
}

bool is_policy(const Finding& finding) {
    switch (finding.cause) {
        case Cause::kAdmissionRejected:
        case Cause::kGenerationTimeLimit:
        case Cause::kReasoningBudget: return true;
        case Cause::kGatewayRewrite: return false;  // nobody sets an end to be rewritten
        default: break;
    }
    return finding.layer == Layer::kSettings || finding.layer == Layer::kClient ||
           (finding.layer == Layer::kGateway && finding.cause != Cause::kConnectionBroken &&
            finding.cause != Cause::kUnexplained);
}

bool needs_others(Cause cause) {
    return cause == Cause::kKvPoolExhausted || cause == Cause::kAdmissionRejected;
}

bool is_loss(const Judged& answer) {
    const Fate fate = fate_of(answer);
    return (fate == Fate::kCut || fate == Fate::kRefused) &&
           answer.conclusion.finding.cause != Cause::kRequestRejected &&
           answer.caused_at == answer.record->request.concurrency;
}

std::size_t telling_answers(const Level& level) {
    return static_cast<std::size_t>(std::ranges::count_if(
        level.answers, [](const Judged& answer) { return fate_of(answer) != Fate::kFailed; }));
}

std::vector<const Judged*> in_planned_order(const Level& level) {
    std::vector<const Judged*> answers;
    for (const Judged& answer : level.answers)
        if (fate_of(answer) != Fate::kFailed) answers.push_back(&answer);
    std::ranges::sort(answers, {}, [](const Judged* answer) {
        return std::tuple(answer->record->timeline.started.value_or(base::Duration{}),
                          answer->record->request.id);
    });
    return answers;
}

std::vector<CauseCount> causes_of(const std::vector<const Judged*>& answers) {
    std::vector<CauseCount> counts;
    std::map<std::pair<Cause, Layer>, std::vector<Confidence>> confidences;
    for (const Judged* answer : answers)
        confidences[{answer->conclusion.finding.cause, answer->conclusion.finding.layer}].push_back(
            answer->conclusion.finding.confidence);
    for (auto& [key, values] : confidences) {
        std::ranges::sort(values, std::greater<>());
        counts.push_back({key.first, key.second, static_cast<std::int64_t>(values.size()),
                          values[(values.size() - 1) / 2]});
    }
    std::ranges::sort(counts, [](const CauseCount& a, const CauseCount& b) {
        return a.count > b.count || (a.count == b.count && a.cause < b.cause);
    });
    return counts;
}

std::vector<double> length_log_ratios(const Level& level) {
    const auto log_length = [](const Record& record) {
        return std::log(
            static_cast<double>(std::max<std::int64_t>(1, record.length_tokens().value_or(0))));
    };
    std::map<std::pair<std::string, std::int64_t>, std::vector<double>> pairs;
    for (std::size_t i = 0; i < level.answers.size(); ++i) {
        const Judged& answer = level.answers[i];
        const Fate fate = fate_of(answer);
        if (!answer.record->length_tokens() || fate == Fate::kFailed || fate == Fate::kRefused)
            continue;
        std::vector<double> alone;
        for (const Record* baseline : answer.baselines)
            if (baseline->length_tokens()) alone.push_back(log_length(*baseline));
        if (alone.empty()) continue;
        // Captures carry no prompt id: each is a pair of its own.
        const std::string& id = answer.record->request.prompt_id;
        pairs[{id.empty() ? std::to_string(i) : id, answer.record->request.seed}].push_back(
            log_length(*answer.record) - stats::mean(alone));
    }
    std::vector<double> ratios;
    for (const auto& [pair, values] : pairs) ratios.push_back(stats::mean(values));
    return ratios;
}

LevelJudgement measure(const Level& level, const answer::Run& run, const std::string& arm) {
    LevelJudgement result;
    result.concurrency = level.concurrency;
    count_fates(result, level);
    measure_times(result, level);
    measure_lengths(result, level, static_cast<std::uint64_t>(run.experiment.seed));
    measure_server(result, level, run, arm);
    std::vector<const Judged*> all;
    for (const Judged& answer : level.answers) all.push_back(&answer);
    result.causes = causes_of(all);
    return result;
}

}  // namespace fullstop::judge
