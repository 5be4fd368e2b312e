// Is a cost table right about real steps, and not only about the passes it was fitted to? A few
// answers at once go through the engine, and every step is put beside its estimate.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/time.h"
#include "engine/backend.h"
#include "engine/cost/cost_model.h"

namespace fullstop::engine {

struct TrialRun {
    std::int64_t steps = 0;
    double mean_miss = 0;  ///< mean of |estimated / taken - 1|: 0.1 is one tenth
    double median_miss = 0;
    double total_miss = 0;  ///< of the time of all steps together, with its sign: what a simulation
                            ///< of the whole would miss
};

/// Absent: no step was computed, because `stop` said so or the backend failed.
std::optional<TrialRun> trial_run(Backend& backend, const base::Clock& clock, const CostModel& cost,
                                  base::Duration budget, const std::function<bool()>& stop);

}  // namespace fullstop::engine
