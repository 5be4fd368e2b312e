// judge_together(): answers of one moment without an experiment. Each gets its cause; population
// tests say what they share; baselines, when given, allow a verdict on length. Nothing here is as
// sure as a run: one moment has no repeats.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "judge/causes/claim.h"
#include "judge/levels/level.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/gaps.h"
#include "judge/signs/hop.h"
#include "judge/verdict.h"
#include "judge/witnesses/prefix.h"
#include "judge/witnesses/quiet.h"
#include "stats/tests_of_pairs.h"
#include "stats/tests_of_rates.h"

namespace fullstop::judge {
namespace {

using answer::Record;
using Group = std::vector<const Record*>;

constexpr double kAlpha = 0.01;
/// Total output that changed by less than this between the two sets is not worth an explanation.
constexpr double kWorthNaming = 0.10;

std::vector<std::string> ids(const Group& records) {
    std::vector<std::string> result;
    for (const Record* record : records) result.push_back(record->request.id);
    return result;
}

Group pointers(const std::vector<Record>& records) {
    Group result;
    for (const Record& record : records) result.push_back(&record);
    return result;
}

void share_moments(std::vector<Evidence>& together, const Population& population) {
    for (const Cluster& cluster : population.clusters) {
        std::string text =
            fmt::format("{} answers ended within {} ms of each other", cluster.members.size(),
                        kSimultaneous / std::chrono::milliseconds(1));
        if (cluster.tokens_live)
            text += fmt::format("; {} live answers held {} tokens (prompt + answer) then",
                                cluster.live, *cluster.tokens_live);
        together.push_back({text, ids(cluster.members), static_cast<double>(cluster.members.size()),
                            "simultaneity"});
    }
    for (const auto& [victim, other] : population.arrivals)
        together.push_back(
            {fmt::format("{} ended when {} arrived", victim->request.id, other->request.id),
             {victim->request.id, other->request.id},
             {},
             "arrival lock"});
    for (const auto& [victim, other] : population.departures)
        together.push_back({fmt::format("{} ended when the client of {} left", victim->request.id,
                                        other->request.id),
                            {victim->request.id, other->request.id},
                            {},
                            "departure lock"});
}

void share_invariants(std::vector<Evidence>& together, const Population& population) {
    const auto add = [&](const std::optional<Invariant>& invariant, std::string_view what,
                         std::string_view test) {
        if (invariant && invariant->answers >= 2)
            together.push_back(
                {fmt::format("{} answers share {}: {:.0f} (spread {:.0f})", invariant->answers,
                             what, invariant->value, invariant->spread),
                 {},
                 invariant->value,
                 std::string(test)});
    };
    add(population.elapsed_ms, "the time from request to end in ms", "invariant elapsed");
    add(population.silence_ms, "the silence before the end in ms", "invariant silence");
    add(population.limit_output, "the length at which a limit ended them, in tokens",
        "invariant C");
    add(population.limit_total, "prompt + answer at which a limit ended them, in tokens",
        "invariant P + C");
}

/// Captures without times: the server's own stamps still show who ended in the same second.
void share_stamps(std::vector<Evidence>& together, const Group& group) {
    Group victims;
    std::set<std::int64_t> lasts, spans;
    for (const Record* record : group) {
        const auto stamps = server_stamps(*record);
        if (!is_victim(*record) || is_timed(*record) || !stamps) continue;
        victims.push_back(record);
        lasts.insert(stamps->last);
        spans.insert(stamps->span_s());
    }
    if (victims.size() < 2) return;
    if (*lasts.rbegin() - *lasts.begin() <= 1)
        together.push_back(
            {fmt::format("{} answers carry their last stamp within one second of each other",
                         victims.size()),
             ids(victims), static_cast<double>(victims.size()), "simultaneity (created)"});
    if (*spans.rbegin() - *spans.begin() <= 1)
        together.push_back({fmt::format("the stamps of {} cut answers span the same time, {} s",
                                        victims.size(), *spans.rbegin()),
                            ids(victims), static_cast<double>(*spans.rbegin()),
                            "invariant elapsed (created)"});
}

void share_pauses(std::vector<Evidence>& together, const Group& group) {
    Group paused;
    double shortest = 0, longest = 0;
    for (const Record* record : group) {
        const auto pause = longest_pause(*record);
        if (!pause || is_victim(*record)) continue;
        shortest = paused.empty() ? *pause : std::min(shortest, *pause);
        longest = std::max(longest, *pause);
        paused.push_back(record);
    }
    if (paused.empty()) return;
    together.push_back({fmt::format("preempted: {} answers fell silent for {:.1f} to {:.1f} s in "
                                    "mid-stream and went on to their own end: pauses, not cuts",
                                    paused.size(), shortest / 1000, longest / 1000),
                        ids(paused), static_cast<double>(paused.size()), "gaps"});
    std::vector<std::string> hit;
    if (const std::string limits = idle_limits_that_would_cut(group, &hit); !limits.empty())
        together.push_back(
            {"idle time-outs that would have cut whole answers: " + limits, hit, {}, "gaps"});
}

std::vector<Judged> judge_group(const Group& group, const Group& alone,
                                const std::vector<Group>& baselines) {
    PromptTokens prompts;
    for (const Group& records : {group, alone})
        for (const Record* record : records)
            if (record->prompt_tokens && !record->request.prompt_id.empty())
                prompts[record->request.prompt_id] = (*record->prompt_tokens).count;
    const Population population = examine(group, prompts);
    const Outages outages = outages_of(group);
    Context context;
    context.siblings = group;
    context.alone = alone;
    context.population = &population;
    context.arm_population = &population;
    context.outages = &outages;
    context.prompt_tokens = &prompts;
    std::vector<Judged> result;
    for (std::size_t i = 0; i < group.size(); ++i) {
        context.baselines = i < baselines.size() ? baselines[i] : Group{};
        result.push_back({group[i], conclude(*group[i], context), context.baselines, nullptr,
                          group[i]->request.concurrency});
    }
    return result;
}

std::vector<const Judged*> losses(const std::vector<Judged>& answers) {
    std::vector<const Judged*> result;
    for (const Judged& answer : answers)
        if (is_loss(answer)) result.push_back(&answer);
    return result;
}

double total_tokens(const std::vector<Judged>& answers) {
    double sum = 0;
    for (const Judged& answer : answers)
        sum += static_cast<double>(answer.record->length_tokens().value_or(0));
    return sum;
}

void decide(TogetherJudgement& result, const Level& level, const Level& baseline) {
    const auto here = losses(level.answers), before = losses(baseline.answers);
    const double p = stats::fisher_greater(
        {static_cast<std::int64_t>(here.size()), static_cast<std::int64_t>(level.answers.size())},
        {static_cast<std::int64_t>(before.size()),
         static_cast<std::int64_t>(baseline.answers.size())});
    if (here.size() >= 2 && p < kAlpha) {
        const CauseCount main = causes_of(here).front();
        const Judged* victim = *std::ranges::find_if(
            here, [&](const Judged* loss) { return loss->conclusion.finding.cause == main.cause; });
        result.verdict =
            is_policy(victim->conclusion.finding) ? Verdict::kPolicy : Verdict::kServingDefect;
        result.cause = main.cause;
        result.next = victim->conclusion.finding.next;
        result.together.push_back(
            {fmt::format(
                 "{} of {} answers are cut, {} of {} alone (Fisher's exact test: p = {:.2g})",
                 here.size(), level.answers.size(), before.size(), baseline.answers.size(), p),
             {},
             p,
             "labelled cuts"});
        return;
    }
    const QuietStream quiet = quiet_stream({{&level, 0}});
    if (quiet.evalue() >= kCalled && std::ssize(quiet.cut) >= 2) {
        result.verdict = Verdict::kServingDefect;
        result.cause = answer::Cause::kUnexplained;
        result.together.push_back(
            {fmt::format("{} of {} answers that call themselves finished stop where the same "
                         "request alone went on (e-value {:.3g})",
                         quiet.cut.size(), quiet.pairs, quiet.evalue()),
             {},
             quiet.evalue(),
             "quiet cuts"});
        return;
    }
    if (!here.empty()) {
        result.verdict = Verdict::kInconclusive;
        result.next = "more answers: these are too few to tell cuts from chance";
        return;
    }
    const auto diverged = std::ranges::count_if(level.answers, [](const Judged& answer) {
        return divergence(*answer.record, answer.baselines).has_value();
    });
    const double alone = total_tokens(baseline.answers), now = total_tokens(level.answers);
    const std::vector<double> ratios = length_log_ratios(level);
    const double length_p = stats::sign_flip(ratios, 1);
    const bool other_length = alone > 0 && std::abs(now / alone - 1) >= kWorthNaming;
    if (diverged == 0 || (!other_length && length_p >= kAlpha)) {
        result.verdict = ratios.size() < 8 ? Verdict::kInconclusive : Verdict::kUnaffected;
        return;
    }
    result.verdict = Verdict::kSamplingVariance;
    result.cause = answer::Cause::kNumericDivergence;
    result.next =
        "repeat in fp32 or with a batch-invariant mode, at temperature 0 and with more seeds: with "
        "equal arithmetic the lengths must agree";
    result.together.push_back(
        {fmt::format("numeric_divergence: {} of {} texts leave their baseline before they end; "
                     "{:.0f} tokens instead of {:.0f} in sum, "
                     "and every end is the answer's own (sign-flip test on {} pairs: p = {:.2g})",
                     diverged, level.answers.size(), now, alone, ratios.size(), length_p),
         {},
         now / alone,
         "length"});
}

}  // namespace

TogetherJudgement judge_together(const std::vector<Record>& records,
                                 const std::vector<Record>& baselines) {
    const Group group = pointers(records), alone = pointers(baselines);
    std::vector<Group> own;
    for (std::size_t i = 0; i < group.size(); ++i)
        own.push_back(i < alone.size() ? Group{alone[i]} : Group{});
    Level level{.concurrency = static_cast<int>(records.size()),
                .answers = judge_group(group, alone, own)};
    TogetherJudgement result;
    for (const Judged& answer : level.answers) result.findings.push_back(answer.conclusion.finding);
    if (group.size() > 1) {
        const Population population = examine(group, {});
        share_moments(result.together, population);
        share_invariants(result.together, population);
        share_stamps(result.together, group);
    }
    share_pauses(result.together, group);
    if (baselines.empty()) return result;
    std::vector<Group> of_alone;
    for (const Record* record : alone) of_alone.push_back({record});
    const Level baseline{.concurrency = 1, .answers = judge_group(alone, alone, of_alone)};
    decide(result, level, baseline);
    return result;
}

}  // namespace fullstop::judge
