#include "judge/levels/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "judge/levels/baseline.h"
#include "judge/levels/headline.h"
#include "judge/levels/latency.h"
#include "judge/signs/end_kind.h"
#include "judge/witnesses/witness.h"
#include "stats/tests_of_rates.h"

namespace fullstop::judge {
namespace {

/// What the tests say of one level above one user.
struct Tested {
    const Level* level = nullptr;
    std::vector<const Judged*> losses;
    std::vector<const Judged*> defects;  ///< those of the losses that no policy explains
    double p_losses = 1, p_defects = 1, p_length = 1;
    std::vector<Witness> witnesses;  ///< p corrected
};

/// What broke in one moment without a word of anybody's is one event, however many answers it took:
/// a blip of the network, or a server that was started anew.
std::size_t events_of(const std::vector<const Judged*>& losses) {
    std::vector<base::Duration> wordless;
    std::size_t events = 0;
    for (const Judged* loss : losses) {
        const answer::Record& record = *loss->record;
        const bool nameless = loss->conclusion.finding.cause == answer::Cause::kConnectionBroken &&
                              record.end.transport != answer::Transport::kRefused;
        if (nameless && is_timed(record))
            wordless.push_back(*record.timeline.ended);
        else
            ++events;
    }
    std::ranges::sort(wordless);
    for (std::size_t i = 0; i < wordless.size(); ++i)
        if (i == 0 || wordless[i] - wordless[i - 1] > kSimultaneous) ++events;
    return events;
}

stats::Count count(std::size_t events, std::size_t total) {
    return {static_cast<std::int64_t>(events), static_cast<std::int64_t>(total)};
}

std::vector<const Judged*> defects_of(const std::vector<const Judged*>& losses) {
    std::vector<const Judged*> defects;
    for (const Judged* loss : losses)
        if (!is_policy(loss->conclusion.finding)) defects.push_back(loss);
    return defects;
}

template <class Get>
void correct(std::vector<Tested>& levels, const Get& get) {
    std::vector<double> p;
    for (Tested& level : levels) p.push_back(get(level));
    const std::vector<double> adjusted = stats::holm(p);
    for (std::size_t i = 0; i < levels.size(); ++i) get(levels[i]) = adjusted[i];
}

std::vector<Tested> test_levels(const ArmAnswers& answers, const std::optional<BaselineCut>& cut,
                                std::vector<LevelJudgement>& numbers) {
    std::vector<Tested> tested;
    const Level* baseline = answers.baseline();
    const auto before =
        baseline != nullptr ? load_losses(*baseline, cut) : std::vector<const Judged*>{};
    const std::size_t alone = baseline != nullptr ? telling_answers(*baseline) : 0;
    for (std::size_t i = 0; i < answers.levels.size(); ++i) {
        const Level& level = answers.levels[i];
        if (level.concurrency == 1) continue;
        Tested test;
        test.level = &level;
        test.losses = load_losses(level, cut);
        test.defects = defects_of(test.losses);
        test.p_losses = stats::fisher_greater(count(test.losses.size(), telling_answers(level)),
                                              count(before.size(), alone));
        test.p_defects = stats::fisher_greater(count(test.defects.size(), telling_answers(level)),
                                               count(defects_of(before).size(), alone));
        if (numbers[i].paired_length) test.p_length = numbers[i].paired_length->p;
        if (baseline != nullptr) test.witnesses = witnesses(level, *baseline);
        tested.push_back(std::move(test));
    }
    correct(tested, [](Tested& t) -> double& { return t.p_losses; });
    correct(tested, [](Tested& t) -> double& { return t.p_defects; });
    correct(tested, [](Tested& t) -> double& { return t.p_length; });
    for (std::size_t w = 0; w < 3; ++w)
        if (baseline != nullptr)
            correct(tested, [w](Tested& t) -> double& { return t.witnesses[w].p; });
    return tested;
}

bool significant(double p, std::size_t victims) {
    return p < kAlpha && static_cast<std::int64_t>(victims) >= kLeastVictims;
}

const Witness* rising(const Tested& test) {
    // Three witnesses are asked at once.
    for (const Witness& witness : test.witnesses)
        if (significant(witness.p * 3, static_cast<std::size_t>(witness.events))) return &witness;
    return nullptr;
}

std::string counts(const std::vector<const Judged*>& losses, const Level& level, std::size_t alone,
                   std::size_t alone_total, double p) {
    return fmt::format(
        "{} of {} answers were lost at {} users, {} of {} alone (Fisher's exact test, corrected: p "
        "= {:.2g})",
        losses.size(), telling_answers(level), level.concurrency, alone, alone_total, p);
}

/// A full pool and a full queue, in their own words: others must be at work for that, so one is
/// enough.
bool needs_load(const Judged* loss, answer::Cause cause) {
    return loss->conclusion.finding.cause == cause &&
           loss->conclusion.finding.confidence == answer::Confidence::kProven;
}

/// Steps 1 to 5 of 10.5 for one level.
void decide(LevelJudgement& result, const Tested& test, const ArmAnswers& answers,
            const std::optional<BaselineCut>& cut) {
    const Level& level = *test.level;
    const Level* baseline = answers.baseline();
    const std::size_t alone_total = baseline != nullptr ? telling_answers(*baseline) : 0;
    const std::size_t alone = baseline != nullptr ? load_losses(*baseline, cut).size() : 0;
    const std::int64_t pairs = result.paired_length ? result.paired_length->pairs : 0;
    result.p_cut = test.p_losses;
    const auto once = [&](answer::Cause cause) {
        return alone == 0 && std::ranges::any_of(test.losses, [cause](const Judged* loss) {
                   return needs_load(loss, cause);
               });
    };
    const bool pool = once(answer::Cause::kKvPoolExhausted);
    if (pool || once(answer::Cause::kAdmissionRejected) ||
        significant(test.p_defects, events_of(test.defects)) ||
        significant(test.p_losses, events_of(test.losses))) {
        const bool defect = pool || significant(test.p_defects, events_of(test.defects));
        result.verdict = defect ? Verdict::kServingDefect : Verdict::kPolicy;
        result.why =
            counts(test.losses, level, alone, alone_total, defect ? test.p_defects : test.p_losses);
        return;
    }
    if (const Witness* witness = rising(test)) {
        result.verdict = Verdict::kServingDefect;
        result.why = fmt::format("{} (p = {:.2g})", witness->text, witness->p);
        return;
    }
    if (cut) {
        result.verdict = is_policy(cut->victims.front()->conclusion.finding)
                             ? Verdict::kPolicy
                             : Verdict::kServingDefect;
        result.why = "cut as one user alone is; load adds nothing";
        return;
    }
    if (static_cast<double>(result.failed) > 0.1 * static_cast<double>(result.answers)) {
        result.why = fmt::format("{} of {} answers were lost to the measurement itself",
                                 result.failed, result.answers);
        return;
    }
    const auto gone = std::ranges::find_if(
        level.answers, [&](const Judged& answer) { return answer.caused_at != level.concurrency; });
    if (gone != level.answers.end()) {
        result.why =
            fmt::format("not measured: the server had died at {} users and refused what came after",
                        gone->caused_at);
        return;
    }
    if (test.losses.size() > 1 && events_of(test.losses) == 1) {
        result.why = fmt::format(
            "{} answers broke in one moment at {} users: one event, which a second visit to this "
            "level must confirm",
            test.losses.size(), level.concurrency);
        return;
    }
    if (!test.losses.empty()) {
        result.why = counts(test.losses, level, alone, alone_total, test.p_losses) +
                     ": too few to tell from chance";
        return;
    }
    if (pairs < kLeastPairs) {
        result.why = fmt::format("only {} pairs of the same prompt and seed, {} are needed", pairs,
                                 kLeastPairs);
        return;
    }
    if (test.p_length < kAlpha) {
        result.verdict = Verdict::kSamplingVariance;
        result.why = fmt::format(
            "lengths changed by a factor of {:.2f} (p = {:.2g}), but every answer ended by itself: "
            "other text, not a cut",
            result.paired_length->median_ratio, test.p_length);
        return;
    }
    if (const auto slower = slowdown(level, *baseline)) {
        result.verdict = Verdict::kLatencyOnly;
        result.why = slower->text;
        return;
    }
    result.verdict = Verdict::kUnaffected;
    result.why = "neither shorter nor slower than one user beyond noise";
}

void decide_baseline(LevelJudgement& result, const std::optional<BaselineCut>& cut) {
    if (cut) {
        result.verdict = is_policy(cut->victims.front()->conclusion.finding)
                             ? Verdict::kPolicy
                             : Verdict::kServingDefect;
        result.why =
            fmt::format("{} of {} answers of one user alone are cut: {}", cut->victims.size(),
                        result.answers, answer::to_string(cut->cause.cause));
        return;
    }
    result.verdict = Verdict::kUnaffected;
    result.why = "the baseline: one user alone";
}

/// The victims that explain a verdict at this level: by label, else by witness.
std::vector<const Judged*> victims_of(const Tested& test, Verdict verdict,
                                      const std::optional<BaselineCut>& cut) {
    if (verdict == Verdict::kServingDefect && !test.defects.empty()) return test.defects;
    if (!test.losses.empty()) return test.losses;
    if (const Witness* witness = rising(test)) return witness->answers;
    std::vector<const Judged*> alike;
    for (const Judged& answer : test.level->answers)
        if (cut && is_loss(answer) &&
            answer.conclusion.finding.cause == cut->victims.front()->conclusion.finding.cause)
            alike.push_back(&answer);
    return alike;
}

std::string drift_of(const ArmAnswers& answers) {
    const Level* baseline = answers.baseline();
    if (baseline == nullptr) return {};
    std::size_t before = 0, before_lost = 0, after = 0, after_lost = 0;
    for (const Judged& answer : baseline->answers) {
        const bool late = answer.record->request.phase == "baseline_after";
        ++(late ? after : before);
        if (is_loss(answer)) ++(late ? after_lost : before_lost);
    }
    if (significant(stats::fisher_greater(count(after_lost, after), count(before_lost, before)),
                    after_lost))
        return fmt::format(
            "the baseline after the load loses {} of {} answers, the one before {} of {}: the "
            "server is not the same any more",
            after_lost, after, before_lost, before);
    return {};
}

/// A machine that became slower or faster clouds what is said of speed; how answers end is as it
/// was.
std::string speed_drift_of(const ArmAnswers& answers) {
    const Level* baseline = answers.baseline();
    const auto drifted = baseline != nullptr ? drift(*baseline) : std::nullopt;
    return drifted ? drifted->text : std::string();
}

}  // namespace

const Level* ArmAnswers::baseline() const {
    const auto found = std::ranges::find(levels, 1, &Level::concurrency);
    return found == levels.end() || found->answers.empty() ? nullptr : &*found;
}

std::int64_t answers_until_firm(const ArmAnswers& answers) {
    const Level* baseline = answers.baseline();
    if (baseline == nullptr) return 0;
    const auto loaded = std::ranges::count_if(
        answers.levels, [](const Level& level) { return level.concurrency > 1; });
    std::int64_t more = 0;
    // The first of Holm's steps is the hardest: all levels must pass it to be safe.
    const double alpha = kAlpha / static_cast<double>(std::max<std::ptrdiff_t>(1, loaded));
    std::map<std::int64_t, std::int64_t>
        known;  // levels are of one size as a rule, and the search is not free
    for (const Level& level : answers.levels) {
        if (level.concurrency == 1 || level.answers.empty()) continue;
        const auto now =
            static_cast<std::int64_t>(std::max<std::size_t>(1, telling_answers(level)));
        if (known.contains(now)) continue;
        const double share =
            static_cast<double>(telling_answers(*baseline)) / static_cast<double>(now);
        constexpr std::int64_t kEnough =
            2000;  // the search ends where the power is 1 for any alpha in use
        std::int64_t total = now;
        while (total < kEnough &&
               stats::fisher_power(
                   total, static_cast<std::int64_t>(std::floor(share * static_cast<double>(total))),
                   kRateToSee, alpha, kLeastVictims) < kPower)
            ++total;
        known[now] = total - now;
        more = std::max(more, total - now);
    }
    return more;
}

ArmJudgement judge_arm(const ArmAnswers& answers, const answer::Run& run) {
    ArmJudgement result;
    result.name = answers.name;
    result.url = answers.url;
    const auto cut = baseline_cut(answers.baseline());
    for (const Level& level : answers.levels)
        result.levels.push_back(measure(level, run, answers.name));
    const std::vector<Tested> tested = test_levels(answers, cut, result.levels);
    const std::string drifted = drift_of(answers);
    Reasons reasons;
    reasons.arm = &answers;
    reasons.drift = drifted;
    reasons.speed_drift = speed_drift_of(answers);
    reasons.more = answers_until_firm(answers);
    auto test = tested.begin();
    for (std::size_t i = 0; i < answers.levels.size(); ++i) {
        LevelJudgement& level = result.levels[i];
        if (level.concurrency == 1) {
            decide_baseline(level, cut);
            if (cut) reasons.victims[1] = cut->victims;
            continue;
        }
        decide(level, *test, answers, cut);
        if (level.paired_length) level.paired_length->p = test->p_length;
        if (!drifted.empty() && level.verdict < Verdict::kInconclusive) {
            level.verdict = Verdict::kInconclusive;
            level.why = drifted;
        }
        if (level.verdict >= Verdict::kPolicy)
            reasons.victims[level.concurrency] = victims_of(*test, level.verdict, cut);
        ++test;
    }
    result.verdict = sum_up(result.levels, reasons, run);
    return result;
}

}  // namespace fullstop::judge
