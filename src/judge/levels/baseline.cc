#include "judge/levels/baseline.h"

#include "judge/levels/arm.h"

namespace fullstop::judge {

std::optional<BaselineCut> baseline_cut(const Level* baseline) {
    if (baseline == nullptr || baseline->answers.empty()) return std::nullopt;
    std::vector<const Judged*> losses;
    for (const Judged& answer : baseline->answers)
        if (is_loss(answer)) losses.push_back(&answer);
    for (const CauseCount& cause : causes_of(losses)) {
        if (cause.count < kLeastVictims ||
            static_cast<double>(cause.count) <
                kBaselineCut * static_cast<double>(telling_answers(*baseline)))
            continue;
        BaselineCut cut{cause, {}};
        for (const Judged* loss : losses)
            if (loss->conclusion.finding.cause == cause.cause) cut.victims.push_back(loss);
        return cut;
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
