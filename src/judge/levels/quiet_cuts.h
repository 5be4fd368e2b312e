// Are answers cut that call themselves finished? The quiet stream of each level (witnesses/quiet.h)
// is called at the highest level first; where it is called, the answers that show it are cut ones.
#pragma once

#include "judge/levels/arm.h"

namespace fullstop::judge {

/// Fills Level::quiet of every level above one user, and names the answers of called levels
/// unexplained and shortened.
void find_quiet_cuts(ArmAnswers& arm);

}  // namespace fullstop::judge
