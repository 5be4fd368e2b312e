// `fullstop simulate --calibrate`: how long passes take on this machine, kept for simulate (and whoever plans steps).
#pragma once

#include <functional>

#include "adapters/llama/backend.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/serve_options.h"
#include "cli/world.h"
#include "engine/cost_table.h"

namespace fullstop::cli {

/// What a table measured with these options holds for.
engine::CostKey cost_key(const adapters::llama::LoadOptions& options, bool streams);

/// Loads the model, measures, stores, prints. Returns the exit code.
int calibrate(const World& world, const ServeWords& words, bool quiet);

struct MeasuredCosts {
    std::vector<engine::CostPoint> passes;
    std::vector<engine::SwapPoint> swaps;
};
/// Passes of 1 to 256 rows up to 1024 tokens deep where the window allows, alone and in company, each measured several times, and copies to host
/// memory and back. Ends after
/// `budget` or when `stop` says so, with what it has. `seen` is told of the share that is done.
MeasuredCosts measure_passes(engine::Backend& backend, const base::Clock& clock, base::Duration budget, const std::function<bool()>& stop,
                             const std::function<void(double)>& seen);

}  // namespace fullstop::cli
