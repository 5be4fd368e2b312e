// What steps cost on this machine, for a server that has latency targets: a table that was kept, or
// a few seconds of measuring.
#pragma once

#include <optional>

#include "cli/serve/serve_options.h"
#include "cli/world.h"
#include "engine/backend.h"
#include "engine/cost/cost_model.h"

namespace fullstop::cli {

struct StepCosts {
    std::optional<engine::CostModel>
        model;  ///< absent: there are no targets, or nothing could be measured, which was said
    bool interrupted = false;  ///< by Ctrl-C while it was measured
};

/// `backend` is loaded and used by nobody yet. Says what it found, and that a target cannot be met
/// where that is so.
StepCosts step_costs(const World& world, const ServeOptions& options, engine::Backend& backend);

}  // namespace fullstop::cli
