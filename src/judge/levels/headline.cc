#include "judge/levels/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "judge/levels/load.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/gaps.h"
#include "judge/signs/words.h"

namespace fullstop::judge {
namespace {

using answer::Confidence;

/// Evidence and records beyond these are in the findings; a verdict is read by people.
constexpr std::size_t kEvidence = 8;

const LevelJudgement* worst(const std::vector<LevelJudgement>& levels) {
    const LevelJudgement* result = nullptr;
    for (const LevelJudgement& level : levels)
        if (result == nullptr || level.verdict > result->verdict) result = &level;
    return result;
}

std::vector<std::string> ids(const std::vector<const Judged*>& answers) {
    std::vector<std::string> result;
    for (const Judged* answer : answers) result.push_back(answer->record->request.id);
    return result;
}

void add_evidence(Judgement& judgement, Evidence evidence) {
    const bool known = std::ranges::any_of(
        judgement.evidence, [&](const Evidence& other) { return other.text == evidence.text; });
    if (!known && judgement.evidence.size() < kEvidence)
        judgement.evidence.push_back(std::move(evidence));
}

void add_remedies(Judgement& judgement, const std::vector<Remedy>& remedies) {
    for (const Remedy& remedy : remedies)
        if (std::ranges::none_of(judgement.remedies,
                                 [&](const Remedy& other) { return other.text == remedy.text; }))
            judgement.remedies.push_back(remedy);
}

bool contains_counter(const Judged& answer) {
    return std::ranges::any_of(
        answer.conclusion.finding.alternatives, [](const Alternative& other) {
            return other.cause == answer::Cause::kPreempted && contains(other.why_not, "counter");
        });
}

/// The victim with the most to say of this cause: most evidence, then most remedies.
const Judged* best_of(const std::vector<const Judged*>& victims, answer::Cause cause) {
    const Judged* best = nullptr;
    for (const Judged* victim : victims) {
        const auto& conclusion = victim->conclusion;
        if (conclusion.finding.cause != cause) continue;
        if (best == nullptr ||
            conclusion.finding.evidence.size() > best->conclusion.finding.evidence.size())
            best = victim;
    }
    return best;
}

/// A cut that no answer labels.
CauseCount unlabelled(const std::vector<const Judged*>& victims) {
    return {answer::Cause::kUnexplained, answer::Layer::kUnknown,
            static_cast<std::int64_t>(victims.size()), Confidence::kUnresolved};
}

std::int64_t losses_to(answer::Cause cause, const Level& level) {
    return std::ranges::count_if(level.answers, [&](const Judged& answer) {
        return is_loss(answer) && answer.conclusion.finding.cause == cause &&
               !(level.concurrency == 1 && left_by_the_load(answer, level));
    });
}

/// The first level at which this cause took two answers or more, once a higher one shows it for
/// certain and one user alone never lost an answer to it.
int first_with(answer::Cause cause, int certain, const Reasons& reasons) {
    int first = certain;
    for (const Level& level : reasons.arm->levels) {
        const std::int64_t lost = losses_to(cause, level);
        if (level.concurrency == 1 && lost > 0) return certain;
        if (level.concurrency > 1 && lost >= kLeastVictims)
            first = std::min(first, level.concurrency);
    }
    return first;
}

void explain_loss(Judgement& judgement, const std::vector<LevelJudgement>& levels,
                  const Reasons& reasons) {
    int highest = 0;
    std::vector<const Judged*> all;
    for (const LevelJudgement& level : levels) {
        if (level.verdict != judgement.value) continue;
        if (!judgement.from_concurrency) judgement.from_concurrency = level.concurrency;
        const auto& victims = reasons.victims.at(level.concurrency);
        all.insert(all.end(), victims.begin(), victims.end());
        highest = std::max(highest, level.concurrency);
    }
    std::vector<const Judged*> labelled;
    for (const Judged* victim : all)
        if (is_loss(*victim)) labelled.push_back(victim);
    const CauseCount main = labelled.empty() ? unlabelled(all) : causes_of(labelled).front();
    judgement.cause = main.cause;
    judgement.layer = main.layer;
    judgement.confidence = main.confidence;
    judgement.from_concurrency = first_with(main.cause, *judgement.from_concurrency, reasons);
    for (const int concurrency : {*judgement.from_concurrency, highest}) {
        if (!reasons.victims.contains(concurrency)) continue;
        const auto& victims = reasons.victims.at(concurrency);
        const Judged* best = best_of(victims, main.cause);
        if (best == nullptr && !victims.empty()) best = victims.front();
        if (best == nullptr) continue;
        for (const Evidence& evidence : best->conclusion.finding.evidence)
            add_evidence(judgement, evidence);
        if (concurrency == highest) {
            add_remedies(judgement, best->conclusion.remedies);
            judgement.next = best->conclusion.finding.next;
        }
    }
    for (const LevelJudgement& level : levels)
        if (level.verdict == judgement.value) {
            const auto& victims = reasons.victims.at(level.concurrency);
            add_evidence(judgement, {level.why, ids(victims), static_cast<double>(victims.size()),
                                     fmt::format("level {}", level.concurrency)});
        }
}

/// "7 of 16 answers at 8 users".
std::string share_at(const Level& level, std::int64_t lost) {
    return fmt::format("{} of {} answers at {} {}", lost, telling_answers(level), level.concurrency,
                       level.concurrency == 1 ? "user" : "users");
}

/// Cut, refused, or both.
std::string what_happens(const Reasons& reasons) {
    bool cut = false, refused = false;
    for (const auto& [concurrency, victims] : reasons.victims)
        for (const Judged* victim : victims)
            (fate_of(*victim) == Fate::kRefused ? refused : cut) = true;
    return cut && refused ? "cut or refused" : refused ? "refused" : "cut";
}

/// The first level that shows it, and the highest.
std::string loss_headline(const Judgement& judgement, const std::vector<LevelJudgement>& levels,
                          const Reasons& reasons) {
    const int from = *judgement.from_concurrency;
    int highest = 0;
    for (const LevelJudgement& level : levels)
        if (level.verdict == judgement.value) highest = std::max(highest, level.concurrency);
    std::string shares;
    for (const Level& level : reasons.arm->levels) {
        if (level.concurrency != from && level.concurrency != highest) continue;
        const auto victims = reasons.victims.find(level.concurrency);
        // The first level may show it only in the light of a higher one.
        const std::int64_t lost = victims != reasons.victims.end()
                                      ? std::ssize(victims->second)
                                      : losses_to(*judgement.cause, level);
        if (lost > 0) shares += (shares.empty() ? "" : ", ") + share_at(level, lost);
    }
    return fmt::format("Answers are {} from {} on: {} ({}).", what_happens(reasons),
                       from == 1 ? "one user" : fmt::format("{} users", from),
                       spoken(*judgement.cause), shares);
}

void note_pauses(Judgement& judgement, const ArmAnswers& arm) {
    std::vector<const answer::Record*> records, paused;
    bool counted = false;
    for (const Level& level : arm.levels)
        for (const Judged& answer : level.answers) {
            records.push_back(answer.record);
            const bool named = std::ranges::any_of(
                answer.conclusion.finding.alternatives,
                [](const Alternative& other) { return other.cause == answer::Cause::kPreempted; });
            if (!named) continue;
            paused.push_back(answer.record);
            counted = counted || contains_counter(answer);
        }
    if (paused.empty()) return;
    std::vector<std::string> hit;
    const std::string limits = idle_limits_that_would_cut(records, &hit);
    add_evidence(
        judgement,
        {fmt::format("preempted: {} answers paused and went on, which shortens nothing{}{}",
                     paused.size(), counted ? "; the server's preemption counter moved" : "",
                     limits.empty() ? std::string()
                                    : "; idle time-outs that would have cut them: " + limits),
         hit, static_cast<double>(paused.size()), "gaps"});
}

void explain_rest(Judgement& judgement, const LevelJudgement& level, const Reasons& reasons) {
    const int users = level.concurrency;
    switch (judgement.value) {
        case Verdict::kUnaffected:
            judgement.headline =
                level.paired_length && level.paired_length->pairs >= kLeastPairs
                    ? fmt::format("Nothing was shortened and nothing slower, up to {} users.",
                                  users)
                    : fmt::format(
                          "Nothing was shortened up to {} users; how much slower answers "
                          "come cannot be told from so few.",
                          users);
            break;
        case Verdict::kLatencyOnly:
            judgement.headline =
                fmt::format("Nothing was shortened: answers only come slower ({} at {} users).",
                            level.why, users);
            break;
        case Verdict::kSamplingVariance:
            judgement.headline = fmt::format(
                "Nothing was cut: answers differ in length at {} users because the texts differ, "
                "and all ended by themselves.",
                users);
            judgement.cause = answer::Cause::kNumericDivergence;
            judgement.layer = answer::Layer::kModel;
            judgement.confidence = Confidence::kWeak;
            judgement.next =
                "repeat in fp32 or with a batch-invariant mode, at temperature 0 and with more "
                "seeds: with equal arithmetic the lengths must agree";
            break;
        default:
            judgement.headline = fmt::format("Not decided: {}.", level.why);
            judgement.missing.push_back(level.why);
            judgement.next = reasons.drift.empty()
                                 ? "more answers per level: --repeat, or more prompts"
                                 : "measure again on a machine that does nothing else";
    }
    add_evidence(judgement, {level.why, {}, {}, fmt::format("level {}", users)});
}

/// Nothing is cut by it, but the answer is one to another question: it leads the report of a run
/// without losses.
void note_dropped_prompts(Judgement& judgement, const ArmAnswers& arm) {
    const auto dropped = [](const Judged& answer) {
        return answer.conclusion.finding.cause == answer::Cause::kPromptTruncated;
    };
    const Level* last = nullptr;
    int from = 0;
    for (const Level& level : arm.levels) {
        if (std::ranges::none_of(level.answers, dropped)) continue;
        if (last == nullptr) from = level.concurrency;
        last = &level;
    }
    if (last == nullptr) return;
    const Conclusion& conclusion = std::ranges::find_if(last->answers, dropped)->conclusion;
    for (const Evidence& evidence : conclusion.finding.evidence) add_evidence(judgement, evidence);
    if (judgement.value >= Verdict::kPolicy) return;
    judgement.cause = conclusion.finding.cause;
    judgement.layer = conclusion.finding.layer;
    judgement.confidence = conclusion.finding.confidence;
    judgement.from_concurrency = from;
    judgement.next = conclusion.finding.next;
    add_remedies(judgement, conclusion.remedies);
    judgement.headline = fmt::format(
        "No answer was cut, but from {} users on {} ({} of {} answers at {} users): those answer "
        "another question.",
        from, spoken(*judgement.cause), std::ranges::count_if(last->answers, dropped),
        last->answers.size(), last->concurrency);
}

}  // namespace

std::string spoken(answer::Cause cause) { return std::string(answer::entry(cause).meaning); }

Judgement sum_up(const std::vector<LevelJudgement>& levels, const Reasons& reasons,
                 const answer::Run& run) {
    Judgement judgement;
    const bool measured = reasons.arm->baseline() != nullptr;
    std::vector<LevelJudgement> loaded;
    for (const LevelJudgement& level : levels)
        if (level.concurrency > 1 || level.verdict >= Verdict::kPolicy) loaded.push_back(level);
    const LevelJudgement* decisive = worst(loaded);
    if (decisive == nullptr) {
        judgement.headline = measured ? "Not decided: only one user was measured."
                                      : "Not decided: no answer was measured.";
        judgement.missing.push_back(measured ? "a level above one user" : "answers");
        return judgement;
    }
    judgement.value = decisive->verdict;
    const auto& bound = levels.back().bound;
    const bool bounded = bound && *bound < kFirmBound;
    judgement.firm = judgement.value >= Verdict::kPolicy ||
                     (bounded && judgement.value != Verdict::kInconclusive);
    if (judgement.value >= Verdict::kPolicy) {
        explain_loss(judgement, levels, reasons);
        judgement.headline = loss_headline(judgement, levels, reasons);
    } else {
        // The highest level that has the verdict tells most.
        for (const LevelJudgement& level : loaded)
            if (level.verdict == judgement.value) decisive = &level;
        explain_rest(judgement, *decisive, reasons);
        if (bound && !bounded)
            judgement.missing.push_back(
                fmt::format("more answers at {} users: up to {:.0f} % of them can still be cut",
                            levels.back().concurrency, *bound * 100));
    }
    judgement.load = load_of(judgement, levels);
    if (!reasons.speed_drift.empty()) {
        if (judgement.value == Verdict::kLatencyOnly || judgement.value == Verdict::kUnaffected)
            judgement.headline +=
                " The machine itself changed its speed meanwhile: how much slower "
                "load makes it is not known.";
        judgement.missing.push_back("firm times: " + reasons.speed_drift);
    }
    if (!measured) judgement.missing.push_back("a baseline of one user alone");
    note_pauses(judgement, *reasons.arm);
    note_dropped_prompts(judgement, *reasons.arm);
    if (run.interrupted) judgement.missing.push_back("the rest of the run, which was interrupted");
    return judgement;
}

}  // namespace fullstop::judge
