// Where runs are kept when the user does not say: one SQLite file in the state folder of the XDG
// base directory rules.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/world.h"

namespace fullstop::cli {

/// `given` when not empty, else $XDG_STATE_HOME/fullstop/runs.sqlite, else
/// ~/.local/state/fullstop/runs.sqlite.
base::Result<std::filesystem::path> store_file(const World& world, const std::string& given);

}  // namespace fullstop::cli
