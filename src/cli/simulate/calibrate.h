// `fullstop simulate --calibrate`: how long passes take on this machine, kept for simulate (and
// whoever plans steps).
#pragma once

#include "adapters/llama/backend.h"
#include "cli/serve/serve_options.h"
#include "cli/world.h"
#include "engine/cost/cost_table.h"

namespace fullstop::cli {

/// What a table measured with these options holds for.
engine::CostKey cost_key(const adapters::llama::LoadOptions& options, engine::KvLayout layout);

/// Loads the model, measures, stores, prints. Returns the exit code.
int calibrate(const World& world, const ServeFlags& flags, bool quiet);

}  // namespace fullstop::cli
