// `fullstop explain FILE...`: why did this saved answer end? No server, no load.
#pragma once

#include "cli/world.h"

namespace fullstop::cli {

Command add_explain(CLI::App& root, World& world);

}  // namespace fullstop::cli
