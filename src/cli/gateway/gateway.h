// `fullstop gateway`: an honest relay in front of one server.
#pragma once

#include "cli/world.h"

namespace fullstop::cli {

Command add_gateway(CLI::App& root, World& world);

}  // namespace fullstop::cli
