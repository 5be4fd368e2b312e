#include "judge/levels/next_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "stats/evalues.h"

namespace fullstop::judge {
namespace {

/// Answers of one batch at least; a level that stays undecided after kMostVisits of them is left
/// so.
constexpr int kAnswers = 16;
constexpr int kMostVisits = 6;
/// E-value of quiet cuts from which on more pairs are worth their time.
constexpr double kSuspicious = 3;
/// A level is clean when at most this share, or half of what the next cut level loses, can be cut.
constexpr double kCleanBound = 0.03;

int repeats(const answer::Run& run) {
    const int prompts = std::max(1, static_cast<int>(run.experiment.prompts.size()));
    return (kAnswers + prompts - 1) / prompts;
}

bool is_cut(const LevelJudgement& level) { return level.verdict >= Verdict::kPolicy; }

double share_lost(const LevelJudgement& level) {
    const auto telling = std::max<std::int64_t>(1, level.answers - level.failed);
    return static_cast<double>(level.cut + level.refused) / static_cast<double>(telling);
}

bool is_clean(const LevelJudgement& level, const LevelJudgement& cut) {
    if (level.concurrency == 1) return true;
    return !is_cut(level) && level.cut + level.refused == 0 && level.bound &&
           *level.bound < std::max(kCleanBound, share_lost(cut) / 2);
}

bool visited_enough(const LevelJudgement& level) {
    return level.answers >= static_cast<std::int64_t>(kAnswers) * kMostVisits;
}

/// Between the highest clean level and the lowest that is cut.
std::optional<answer::Batch> bracket(const ArmJudgement& arm, const answer::Run& run) {
    const auto cut = std::ranges::find_if(arm.levels, is_cut);
    if (cut == arm.levels.end() || cut->concurrency == 1 || cut == arm.levels.begin())
        return std::nullopt;
    const LevelJudgement& below = *std::prev(cut);
    if (!is_clean(below, *cut)) {
        if (visited_enough(below)) return std::nullopt;
        return answer::Batch{below.concurrency, repeats(run), false, false,
                             fmt::format("answers are cut at {} users, and {} users are not clear",
                                         cut->concurrency, below.concurrency)};
    }
    const int middle = (below.concurrency + cut->concurrency) / 2;
    if (middle <= below.concurrency) return std::nullopt;
    return answer::Batch{
        middle, repeats(run), true, false,
        fmt::format("answers are whole at {} and cut at {}", below.concurrency, cut->concurrency)};
}

/// Bare breaks are compared with those alone; words of a server speak for themselves.
bool breaks(const LevelJudgement& level) {
    return std::ranges::any_of(level.causes, [](const CauseCount& count) {
        return count.cause == answer::Cause::kConnectionBroken;
    });
}

std::optional<answer::Batch> look_again(const ArmJudgement& arm, const answer::Run& run) {
    for (auto level = arm.levels.rbegin(); level != arm.levels.rend(); ++level)
        if (level->concurrency > 1 && level->verdict == Verdict::kInconclusive &&
            level->cut + level->refused > 0 && !visited_enough(*level))
            return answer::Batch{level->concurrency, repeats(run), false, breaks(*level),
                                 fmt::format("{} of {} answers were lost there, too few to tell "
                                             "from chance",
                                             level->cut + level->refused, level->answers)};
    return std::nullopt;
}

double evalue(const LevelJudgement& level, std::string_view name) {
    const auto test = std::ranges::find(level.tests, name, &LevelTest::name);
    return test == level.tests.end() ? 1 : test->e.value_or(1);
}

std::optional<answer::Batch> more_pairs(const LevelJudgement& top, const answer::Run& run) {
    const double e = (evalue(top, kQuietPairs) + evalue(top, kQuietFlips)) / 2;
    if (top.concurrency == 1 || e < kSuspicious || visited_enough(top)) return std::nullopt;
    return answer::Batch{top.concurrency, repeats(run), false, true,
                         "some answers stop where the same request alone went on"};
}

std::optional<answer::Batch> lower_the_bound(const LevelJudgement& top, const answer::Run& run,
                                             double bound) {
    if (top.concurrency == 1 || !top.bound || *top.bound < bound || top.cut + top.refused > 0)
        return std::nullopt;
    return answer::Batch{
        top.concurrency, repeats(run), false, true,
        fmt::format("up to {:.0f} % of the answers can still be cut there", *top.bound * 100)};
}

}  // namespace

std::optional<answer::Batch> next_batch(const ArmJudgement& arm, const answer::Run& run,
                                        const Aims& aims) {
    if (arm.levels.empty() || arm.levels.front().concurrency != 1) return std::nullopt;
    if (std::ranges::any_of(arm.levels, is_cut))
        return aims.find_first ? bracket(arm, run) : std::nullopt;
    if (auto again = look_again(arm, run)) return again;
    if (auto pairs = more_pairs(arm.levels.back(), run)) return pairs;
    return lower_the_bound(arm.levels.back(), run, aims.bound);
}

}  // namespace fullstop::judge
