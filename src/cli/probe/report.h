// `fullstop report [RUN]`: judges a stored run again, or reads a run document, and renders it.
// Sends nothing.
#pragma once

#include "cli/world.h"

namespace fullstop::cli {

Command add_report(CLI::App& root, World& world);

}  // namespace fullstop::cli
