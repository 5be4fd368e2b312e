// `fullstop serve`: the embedded honest server.
#pragma once

#include "cli/world.h"

namespace fullstop::cli {

Command add_serve(CLI::App& root, World& world);

}  // namespace fullstop::cli
