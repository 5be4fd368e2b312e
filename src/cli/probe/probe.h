// `fullstop probe`: the main job, wired together.
#pragma once

#include "cli/world.h"

namespace fullstop::cli {

Command add_probe(CLI::App& root, World& world);

}  // namespace fullstop::cli
