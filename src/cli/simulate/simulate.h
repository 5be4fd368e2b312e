// `fullstop simulate`: the engine of serve on a virtual clock, over many settings.
#pragma once

#include "cli/world.h"

namespace fullstop::cli {

Command add_simulate(CLI::App& root, World& world);

}  // namespace fullstop::cli
