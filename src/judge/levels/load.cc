#include "judge/levels/load.h"

#include <algorithm>

#include "judge/levels/arm.h"

namespace fullstop::judge {
namespace {

using answer::Cause;

/// One answer cut in twenty by chance, against one in two hundred.
constexpr double kLikely = 20;

/// What the tests that compare with one user alone say of a level: an e-value, or one look.
double against_alone(const LevelJudgement& level) {
    double rate = 1, pair = 1, quiet = 1;
    bool fisher = false;
    for (const LevelTest& test : level.tests) {
        if (test.name == kLabelledRate) rate = test.e.value_or(1);
        if (test.name == kLabelledPairs) pair = test.e.value_or(1);
        if (test.name == kQuietPairs) quiet = test.e.value_or(1);
        if (test.p) fisher = test.firm;
    }
    return std::max({std::min(rate, pair), quiet, fisher ? kCalled : 1});
}

bool in_its_own_words(const Judgement& judgement) {
    return judgement.cause && needs_others(*judgement.cause) &&
           judgement.confidence == answer::Confidence::kProven;
}

}  // namespace

Load load_of(const Judgement& judgement, const std::vector<LevelJudgement>& levels) {
    if (judgement.value < Verdict::kPolicy) {
        const bool any = !levels.empty() && levels.back().concurrency > 1;
        return {LoadBrings::kOpen, "no level is shortened beyond chance",
                any ? levels.back().bound : std::nullopt};
    }
    if (in_its_own_words(judgement))
        return {LoadBrings::kProven,
                "the words on the wire are of something that only others at work can fill",
                {}};
    const LevelJudgement* best = nullptr;
    for (const LevelJudgement& level : levels)
        if (level.concurrency > 1 && level.verdict == judgement.value &&
            (best == nullptr || against_alone(level) > against_alone(*best)))
            best = &level;
    const double shown = best == nullptr ? 1 : against_alone(*best);
    if (shown >= kCalled) return {LoadBrings::kProven, best->why, {}};
    if (judgement.cause == Cause::kGatewayTokenBudget)
        return {LoadBrings::kLikely, "the limit is another one at another number of users", {}};
    if (judgement.from_concurrency == 1)
        return {LoadBrings::kOpen, "one user alone is cut as well", {}};
    if (shown >= kLikely)
        return {LoadBrings::kLikely, "more than alone, but too few answers for certainty", {}};
    return {LoadBrings::kOpen, "answers are cut; whether load does it needs more of them", {}};
}

}  // namespace fullstop::judge
