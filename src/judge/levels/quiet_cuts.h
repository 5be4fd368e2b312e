// Are answers cut that call themselves finished? The quiet stream of each level (witnesses/quiet.h)
// is called at the highest level first; where it is called, the answers that show it are cut ones.
#pragma once

#include "judge/levels/arm.h"

namespace fullstop::judge {

/// Fills Level::quiet of every level above one user, and names the answers of called levels
/// unexplained and shortened.
void find_quiet_cuts(ArmAnswers& arm);

/// One user alone already gets most answers without their end: left open, and the last quarter of
/// what was asked for missing. Some limit does it, whatever the label says.
void find_cuts_alone(ArmAnswers& arm);

}  // namespace fullstop::judge
