// The verdict of one arm: each level against the baseline of one user, then the worst of them (10.5
// of the method).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "judge/levels/level.h"

namespace fullstop::judge {

/// One look, corrected over the levels.
inline constexpr double kAlpha = 0.01;
inline constexpr std::int64_t kLeastVictims = 2;
/// Below this many (prompt, seed) pairs nothing but a labelled cut can be told.
inline constexpr std::int64_t kLeastPairs = 8;
/// With so many of the answers paired, a slow machine's run still says that nothing is cut.
inline constexpr std::int64_t kFewestPairs = 4;
/// "Nothing was shortened" is firm once the 95 % bound of the share of cut answers is below this.
inline constexpr double kFirmBound = 0.10;

/// Names of the tests in the document.
inline constexpr std::string_view kLabelledRate = "labelled rate",
                                  kLabelledPairs = "labelled more than alone",
                                  kQuietPairs = "quiet pairs", kQuietFlips = "quiet stopped first";

/// All answers of one arm. `levels` is sorted by concurrency; the baseline is the level of
/// concurrency 1, if there is one.
struct ArmAnswers {
    std::string name;
    std::string url;
    std::vector<Level> levels;

    const Level* baseline() const;
};

ArmJudgement judge_arm(const ArmAnswers& answers, const answer::Run& run);

}  // namespace fullstop::judge
