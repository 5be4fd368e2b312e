// What the control arm adds: a loss that disappears past the gateway is made by the gateway or a
// policy; one that stays is the server's own.
#pragma once

#include <vector>

#include "judge/levels/arm.h"

namespace fullstop::judge {

/// With a control arm of its own URL: losses of the deployed arm that name no maker (a broken
/// connection, an end nobody explains) and do not occur in the control arm at the same level are
/// placed at the gateway. A time-out that seems a gateway's and comes past the gateway as often is
/// the server's.
void compare_with_control(std::vector<ArmAnswers>& arms);

/// Says in the verdict what the control arm shows, by a test of the two arms against each other at
/// the level that is worst; with fixed admission it speaks of load, too.
void add_control(RunJudgement& result, const answer::Run& run);

}  // namespace fullstop::judge
