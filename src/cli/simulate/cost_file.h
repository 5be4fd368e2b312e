// Where measured cost tables are kept: one file a model, layout, KV type, number of threads and
// build, in the state folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/world.h"
#include "engine/cost/cost_table.h"

namespace fullstop::cli {

/// cost/ beside the store of runs. Error: there is no state folder.
base::Result<std::filesystem::path> cost_file(const World& world, const engine::CostKey& key);
/// Absent: none was measured for this key. Errors: there is one and it cannot be read.
base::Result<std::optional<engine::CostTable>> stored_cost(const World& world,
                                                           const engine::CostKey& key);
/// Makes the folder. Returns where it went.
base::Result<std::filesystem::path> store_cost(const World& world, const engine::CostTable& table);
/// A table that the user named.
base::Result<engine::CostTable> read_cost_file(const std::filesystem::path& file);

}  // namespace fullstop::cli
