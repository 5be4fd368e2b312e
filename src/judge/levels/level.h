// One arm at one concurrency: its answers, their conclusions, and the numbers that the tests
// compare.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "judge/causes/claim.h"
#include "stats/tests_of_rates.h"

namespace fullstop::judge {

struct Judged {
    const answer::Record* record = nullptr;
    Conclusion conclusion;
    std::vector<const answer::Record*> baselines;  ///< the same (prompt, seed) alone
    const answer::Prompt* prompt = nullptr;        ///< null in captures
    int caused_at =
        1;  ///< concurrency whose load it speaks of: another level's, if the server died there
};

/// What the quiet stream says of a level (witnesses/quiet.h); e-values at their highest.
struct QuietTest {
    double score = 1, flip = 1;
    std::int64_t pairs = 0, torn = 0;
    std::int64_t stopped_first = 0, different = 0;
    std::int64_t cut = 0;
    bool called = false;
    bool other_texts = false;  ///< what it sees may be other, shorter texts

    double evalue() const { return (score + flip) / 2; }
};

/// E-values from which on a test is called: at the highest level (half a percent of error), at a
/// lower one when the highest is not, and at one below a level that is called.
inline constexpr double kCalled = 200, kCalledAlone = 1000, kBegins = 60;

struct Level {
    int concurrency = 1;
    std::vector<Judged> answers;
    std::optional<QuietTest> quiet = {};  ///< above one user
};

/// What became of one answer, for counting.
enum class Fate { kNatural, kLimited, kCut, kRefused, kFailed };
Fate fate_of(const Judged& answer);

/// The cause is something that somebody set (a cap, a window, a deadline, a queue limit): verdict
/// `policy`; every other shortening is a `serving_defect`.
bool is_policy(const Finding& finding);

/// Only others at work can fill it: a shared pool, a queue.
bool needs_others(answer::Cause cause);

/// Cut or refused for a reason that counts against the server or its set-up at this level
/// (request_rejected does not: no load in it; and what a server refuses because it died at another
/// level counts there).
bool is_loss(const Judged& answer);

/// Answers that say something: all but those that the measurement itself lost.
std::size_t telling_answers(const Level& level);

/// The same in planned order: in a closed loop the order of starting. The order of ending is not;
/// what is cut ends first.
std::vector<const Judged*> in_planned_order(const Level& level);

/// Causes of losses, most frequent first. A count's confidence is what at least half of its answers
/// reach.
std::vector<CauseCount> causes_of(const std::vector<const Judged*>& answers);

/// The numbers of the level against the arm's baseline; verdict, why and p_cut are left to the arm.
LevelJudgement measure(const Level& level, const answer::Run& run, const std::string& arm);

/// Geometric mean of lengths at the level over those alone, one per (prompt, seed), as logarithms.
std::vector<double> length_log_ratios(const Level& level);

}  // namespace fullstop::judge
