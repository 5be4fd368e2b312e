// What length of answer each deadline allows, at the speeds a server really has at 1, 2, 4 and 8
// users: a limit in seconds is a limit in tokens that moves with load, and hardly anybody knows
// which.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/world.h"
#include "gateway/policy.h"
#include "running/speed_trial.h"

namespace fullstop::cli {

std::string deadline_table(const gateway::Deadlines& deadlines,
                           const std::vector<running::Speed>& speeds, const std::string& how);

/// Prints the table; measures the first upstream when no speed is given. The exit code.
int explain_deadlines(const World& world, const gateway::Policy& policy,
                      std::optional<double> tokens_per_second);

}  // namespace fullstop::cli
