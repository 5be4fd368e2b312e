// Where the next answers decide most: the lowest level that is cut is bracketed, one event is
// looked at again, and where nothing is cut the bound of what can still be cut is brought down.
#pragma once

#include <optional>

#include "judge/levels/arm.h"

namespace fullstop::judge {

std::optional<answer::Batch> next_batch(const ArmJudgement& arm, const answer::Run& run,
                                        const Aims& aims);

}  // namespace fullstop::judge
