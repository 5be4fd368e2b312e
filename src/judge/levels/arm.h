// The verdict of one arm: each level against the baseline of one user, then the worst of them (10.5
// of the method).
#pragma once

#include <string>
#include <vector>

#include "judge/levels/level.h"

namespace fullstop::judge {

/// Labelled cuts count when Fisher's exact test, corrected over the levels, stays below this, and
/// with two victims or more.
inline constexpr double kAlpha = 0.01;
inline constexpr std::int64_t kLeastVictims = 2;
/// Below this many (prompt, seed) pairs nothing but a labelled cut can be told.
inline constexpr std::int64_t kLeastPairs = 8;
/// A baseline that loses at least this share of its answers to one cause is itself cut.
inline constexpr double kBaselineCut = 0.25;
/// Power: a cut rate of this size must be seen with this probability before "nothing was shortened"
/// is firm.
inline constexpr double kRateToSee = 0.10;
inline constexpr double kPower = 0.80;

/// All answers of one arm. `levels` is sorted by concurrency; the baseline is the level of
/// concurrency 1, if there is one.
struct ArmAnswers {
    std::string name;
    std::string url;
    std::vector<Level> levels;

    const Level* baseline() const;
};

ArmJudgement judge_arm(const ArmAnswers& answers, const answer::Run& run);

/// More answers per level until a cut rate of kRateToSee would be seen; 0 when it would be now.
std::int64_t answers_until_firm(const ArmAnswers& answers);

}  // namespace fullstop::judge
