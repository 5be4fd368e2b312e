#include "judge/levels/baseline.h"

#include <algorithm>

#include "judge/levels/arm.h"
#include "judge/levels/labelled.h"

namespace fullstop::judge {

namespace {

/// A limit that somebody set and that names itself: it is there however few answers reach it.
bool is_named_policy(const CauseCount& cause, const std::vector<const Judged*>& losses) {
    if (cause.confidence < answer::Confidence::kStrong) return false;
    return std::ranges::any_of(losses, [&](const Judged* loss) {
        return loss->conclusion.finding.cause == cause.cause && is_policy(loss->conclusion.finding);
    });
}

}  // namespace

bool left_by_the_load(const Judged& answer, const Level& baseline) {
    const auto before = [](const Judged& one) {
        return one.record->request.phase == "baseline_before";
    };
    if (before(answer)) return false;
    const auto cause = answer.conclusion.finding.cause;
    return std::ranges::count_if(baseline.answers, before) >= kLeastPairs &&
           std::ranges::none_of(baseline.answers, [&](const Judged& one) {
               return before(one) && is_loss(one) && one.conclusion.finding.cause == cause;
           });
}

std::optional<BaselineCut> baseline_cut(const Level* baseline) {
    if (baseline == nullptr || baseline->answers.empty()) return std::nullopt;
    std::vector<const Judged*> losses;
    for (const Judged& answer : baseline->answers)
        if (is_loss(answer) && !left_by_the_load(answer, *baseline)) losses.push_back(&answer);
    for (const CauseCount& cause : causes_of(losses)) {
        BaselineCut cut{cause, {}};
        for (const Judged* loss : losses)
            if (loss->conclusion.finding.cause == cause.cause) cut.victims.push_back(loss);
        const LabelledStream stream = labelled_stream(*baseline, cut.victims, nullptr, {});
        const bool often = stream.events.events >= kLeastVictims && stream.rate >= kCalled;
        if (often || is_named_policy(cause, losses)) return cut;
    }
    return std::nullopt;
}

std::vector<const Judged*> load_losses(const Level& level, const std::optional<BaselineCut>& cut) {
    std::vector<const Judged*> losses;
    for (const Judged& answer : level.answers)
        if (is_loss(answer) && (!cut || answer.conclusion.finding.cause != cut->cause.cause))
            losses.push_back(&answer);
    return losses;
}

}  // namespace fullstop::judge
