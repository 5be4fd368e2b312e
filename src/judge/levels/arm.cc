#include "judge/levels/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "judge/levels/baseline.h"
#include "judge/levels/headline.h"
#include "judge/levels/labelled.h"
#include "judge/levels/latency.h"
#include "judge/signs/end_kind.h"
#include "stats/evalues.h"

namespace fullstop::judge {
namespace {

/// What the tests say of one level above one user.
struct Tested {
    const Level* level = nullptr;
    std::vector<const Judged*> losses;
    std::vector<const Judged*> defects;  ///< those of the losses that no policy explains
    LabelledStream lost, broken;         ///< of the losses; of the defects alone
    double least = kCalled;              ///< e-value from which on a rate is called here
    double p_length = 1;
};

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

/// Named losses are more than a healthy server's. Bare breaks must be more than alone, too; alone
/// and loaded answers were fixed in number before the run, so that one look with Fisher's exact
/// test holds as well.
bool shown(const LabelledStream& stream, double least) {
    if (stream.events.events < kLeastVictims) return false;
    if (stream.bare) return stream.pair >= kCalled || stream.fisher < kAlpha;
    return stream.rate >= least;
}

bool shown(const Tested& test) {
    return shown(test.lost, test.least) || shown(test.broken, test.least);
}

/// What a baseline that is itself cut loses still more often under load counts as a loss of load.
bool exceeds(const BaselineCut& cut, const Level& level, const Level& baseline,
             std::size_t levels) {
    const auto count = [&](const Level& of) {
        return stats::Count{std::ranges::count_if(of.answers,
                                                  [&](const Judged& answer) {
                                                      return is_loss(answer) &&
                                                             answer.conclusion.finding.cause ==
                                                                 cut.cause.cause;
                                                  }),
                            static_cast<std::int64_t>(telling_answers(of))};
    };
    return stats::fisher_greater(count(level), count(baseline)) * static_cast<double>(levels) <
           kAlpha;
}

Tested test_level(const Level& level, const Level* baseline, const std::optional<BaselineCut>& cut,
                  std::size_t levels) {
    const bool more = cut && baseline != nullptr &&
                      !is_policy(cut->victims.front()->conclusion.finding) &&
                      exceeds(*cut, level, *baseline, levels);
    const std::optional<BaselineCut> set_aside = more ? std::nullopt : cut;
    const auto before =
        baseline != nullptr ? load_losses(*baseline, set_aside) : std::vector<const Judged*>{};
    Tested test;
    test.level = &level;
    test.losses = load_losses(level, set_aside);
    test.defects = defects_of(test.losses);
    test.lost = labelled_stream(level, test.losses, baseline, before);
    test.broken = labelled_stream(level, test.defects, baseline, defects_of(before));
    return test;
}

std::vector<Tested> test_levels(const ArmAnswers& answers, const std::optional<BaselineCut>& cut,
                                std::vector<LevelJudgement>& numbers) {
    std::vector<Tested> tested;
    const std::size_t levels = answers.levels.size() - (answers.baseline() != nullptr ? 1 : 0);
    for (std::size_t i = 0; i < answers.levels.size(); ++i) {
        if (answers.levels[i].concurrency == 1) continue;
        tested.push_back(test_level(answers.levels[i], answers.baseline(), cut, levels));
        if (numbers[i].paired_length) tested.back().p_length = numbers[i].paired_length->p;
    }
    correct(tested, [](Tested& t) -> double& { return t.lost.fisher; });
    correct(tested, [](Tested& t) -> double& { return t.broken.fisher; });
    correct(tested, [](Tested& t) -> double& { return t.p_length; });
    // A fixed order, from the highest level down: where that is called, less is asked below it.
    double least = kCalled;
    for (auto test = tested.rbegin(); test != tested.rend(); ++test) {
        test->least = least;
        if (shown(*test))
            least = kBegins;
        else if (least == kCalled)
            least = kCalledAlone;
    }
    return tested;
}

std::string counts(const LabelledStream& stream, const std::vector<const Judged*>& losses,
                   const Level& level) {
    std::string text = fmt::format("{} of {} answers were lost at {} users, {} of {} alone",
                                   losses.size(), stream.events.total, level.concurrency,
                                   stream.alone.events, stream.alone.total);
    if (stream.events.events < std::ssize(losses))
        text += fmt::format(", in {} {}", stream.events.events,
                            stream.events.events == 1 ? "moment" : "moments");
    if (stream.bare)
        return text + fmt::format(" (Fisher's exact test, corrected: p = {:.2g})", stream.fisher);
    return text + fmt::format(" (e-value against a rate of 1 %: {:.3g})", stream.rate);
}

std::string quiet_counts(const QuietTest& quiet, int users) {
    return fmt::format(
        "{} of {} answers that call themselves finished at {} users stop where the same request "
        "alone went on, {} of them in the middle (e-value {:.3g})",
        quiet.cut, quiet.pairs, users, quiet.torn, quiet.evalue());
}

/// A full pool and a full queue, in their own words: one is enough.
bool in_its_own_words(const Judged* loss) {
    return needs_others(loss->conclusion.finding.cause) &&
           loss->conclusion.finding.confidence == answer::Confidence::kProven;
}

/// The verdict of one level above one user, the hardest evidence first.
void decide(LevelJudgement& result, const Tested& test, const ArmAnswers& answers,
            const std::optional<BaselineCut>& cut) {
    const Level& level = *test.level;
    const Level* baseline = answers.baseline();
    const std::int64_t pairs = result.paired_length ? result.paired_length->pairs : 0;
    result.p_cut = test.lost.fisher;
    const auto said = [&](const std::vector<const Judged*>& losses) {
        return test.lost.alone.events == 0 && std::ranges::any_of(losses, in_its_own_words);
    };
    const bool quiet = level.quiet && level.quiet->called;
    const bool defect = said(test.defects) || quiet || shown(test.broken, test.least);
    if (defect || said(test.losses) || shown(test.lost, test.least)) {
        result.verdict = defect ? Verdict::kServingDefect : Verdict::kPolicy;
        result.why = quiet ? quiet_counts(*level.quiet, level.concurrency)
                           : counts(defect ? test.broken : test.lost,
                                    defect ? test.defects : test.losses, level);
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
    if (test.losses.size() > 1 && test.lost.events.events == 1) {
        result.why = fmt::format(
            "{} answers broke in one moment at {} users: one event, which a second visit to this "
            "level must confirm",
            test.losses.size(), level.concurrency);
        return;
    }
    if (!test.losses.empty()) {
        result.why = counts(test.lost, test.losses, level) + ": too few to tell from chance";
        return;
    }
    const auto telling = static_cast<std::int64_t>(telling_answers(level));
    if (telling < kLeastPairs || pairs < kFewestPairs) {
        result.why = fmt::format(
            "only {} answers, {} of them with a baseline of the same prompt "
            "and seed; {} and {} are needed",
            telling, pairs, kLeastPairs, kFewestPairs);
        return;
    }
    if (level.quiet && level.quiet->other_texts && level.quiet->evalue() >= kCalled) {
        result.verdict = Verdict::kSamplingVariance;
        result.why = fmt::format(
            "{} of {} answers leave out the end of what was asked for, but none is torn and most "
            "texts went another way than alone: other texts, as far as can be told",
            level.quiet->cut, level.quiet->pairs);
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
    result.why = pairs < kLeastPairs ? "nothing is cut; too few pairs to compare speed"
                                     : "neither shorter nor slower than one user beyond noise";
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

/// Enough to say; and no document holds an infinity.
constexpr double kMostEvalue = 1e12;

std::vector<LevelTest> tests_of(const Tested& test) {
    const LabelledStream& lost = test.lost;
    std::vector<LevelTest> tests{
        {std::string(kLabelledRate), lost.events, lost.alone, {}, lost.rate, shown(test)},
        {std::string(kLabelledPairs), lost.events, lost.alone, {}, lost.pair, lost.pair >= kCalled},
        {"Fisher's exact test", lost.events, lost.alone, lost.fisher, {}, lost.fisher < kAlpha}};
    if (const auto& quiet = test.level->quiet) {
        tests.push_back({std::string(kQuietPairs),
                         {quiet->cut, quiet->pairs},
                         {},
                         {},
                         quiet->score,
                         quiet->score >= kCalled});
        tests.push_back({std::string(kQuietFlips),
                         {quiet->stopped_first, quiet->different},
                         {},
                         {},
                         quiet->flip,
                         quiet->flip >= kCalled});
    }
    for (LevelTest& one : tests)
        if (one.e) one.e = std::min(*one.e, kMostEvalue);
    return tests;
}

/// The victims that explain a verdict at this level.
std::vector<const Judged*> victims_of(const Tested& test, Verdict verdict,
                                      const std::optional<BaselineCut>& cut) {
    if (verdict == Verdict::kServingDefect && !test.defects.empty()) return test.defects;
    if (!test.losses.empty()) return test.losses;
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
    stats::Count before, after;
    for (const Judged& answer : baseline->answers) {
        stats::Count& count = answer.record->request.phase == "baseline_after" ? after : before;
        ++count.total;
        count.events += is_loss(answer);
    }
    if (after.events >= kLeastVictims && stats::fisher_greater(after, before) < kAlpha)
        return fmt::format(
            "the baseline after the load loses {} of {} answers, the one before {} of {}: the "
            "server is not the same any more",
            after.events, after.total, before.events, before.total);
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
        level.tests = tests_of(*test);
        level.bound = stats::rate_bound(test->lost.events);
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
