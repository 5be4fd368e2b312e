// The command line as a whole: which commands exist, and what happens when the words do not fit
// any.
#pragma once

#include <string>
#include <vector>

#include "cli/world.h"

namespace fullstop::cli {

/// Runs one command line (without the program's name) and returns the exit code.
int run(World& world, std::vector<std::string> arguments);

}  // namespace fullstop::cli
