// Does load do it? Another question than whether answers are cut (contract 3): proven by words of
// something that only others at work can fill, or by a test that compares with one user alone.
#pragma once

#include <vector>

#include "judge/verdict.h"

namespace fullstop::judge {

/// `judgement` has its value, cause and confidence; `levels` are of the same arm.
Load load_of(const Judgement& judgement, const std::vector<LevelJudgement>& levels);

}  // namespace fullstop::judge
