// From the levels of one arm to one judgement: the worst verdict, its cause, evidence, remedies
// with numbers, what is missing, and a sentence for people.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "judge/levels/arm.h"
#include "judge/levels/baseline.h"

namespace fullstop::judge {

/// What stands behind the verdicts of the levels.
struct Reasons {
    const ArmAnswers* arm = nullptr;
    std::map<int, std::vector<const Judged*>>
        victims;              ///< by concurrency, of levels that are policy or serving_defect
    std::string drift;        ///< of how answers end; empty: none
    std::string speed_drift;  ///< of the machine; empty: none
};

Judgement sum_up(const std::vector<LevelJudgement>& levels, const Reasons& reasons,
                 const answer::Run& run);

/// "shared KV cache full" and the like: the cause as the subject of a sentence.
std::string spoken(answer::Cause cause);

}  // namespace fullstop::judge
