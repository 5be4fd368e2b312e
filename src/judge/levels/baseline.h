// Is the baseline itself cut? Then the levels are compared for what comes on top of it, and the
// baseline has a verdict of its own: a policy (or a defect) from one user on.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "judge/levels/level.h"

namespace fullstop::judge {

struct BaselineCut {
    CauseCount cause;
    std::vector<const Judged*> victims;
};

/// The most frequent cause that takes more of the baseline than a healthy server loses, or a limit
/// that names itself.
std::optional<BaselineCut> baseline_cut(const Level* baseline);

/// A loss of the baseline after the load, of a cause that the one before it never met: a used-up
/// budget or a server that did not recover.
bool left_by_the_load(const Judged& answer, const Level& baseline);

/// Losses whose cause is not already the baseline's own.
std::vector<const Judged*> load_losses(const Level& level, const std::optional<BaselineCut>& cut);

}  // namespace fullstop::judge
