// How long passes take on this machine: some are computed and timed. What a CostModel is fitted to.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <vector>

#include "base/time.h"
#include "engine/backend.h"
#include "engine/cost/cost_model.h"
#include "engine/cost/swap_cost.h"

namespace fullstop::engine {

/// How thoroughly. Times grow in proportion beyond what is measured.
struct MeasurePlan {
    base::Duration budget;   ///< ends then, after the pass that is being computed, with what it has
    std::int64_t most_rows;  ///< of one pass: 1, 2, 4 ... and this
    std::int64_t deepest_alone;          ///< tokens in KV
    int walks_alone;                     ///< without and with an output in turn
    int repeats;                         ///< of each company; the median counts
    std::array<std::int64_t, 3> depths;  ///< tokens in KV of each in company
};

/// For a table that is kept: on two idle cores the built-in model needs half of its time; a slower
/// one gets fewer points.
inline constexpr MeasurePlan kThoroughly = {.budget = std::chrono::seconds(90),
                                            .most_rows = 256,
                                            .deepest_alone = 1024,
                                            .walks_alone = 6,
                                            .repeats = 5,
                                            .depths = {32, 256, 512}};
/// For a server that starts, and corrects what it knows with every step.
inline constexpr MeasurePlan kBriefly = {.budget = std::chrono::seconds(10),
                                         .most_rows = 128,
                                         .deepest_alone = 1024,
                                         .walks_alone = 2,
                                         .repeats = 3,
                                         .depths = {16, 64, 160}};

struct MeasuredCosts {
    std::vector<CostPoint> passes;
    std::vector<SwapPoint> swaps;  ///< copies to host memory and back
};

/// Uses `backend`, which nobody else does meanwhile, and leaves it empty. Ends early when `stop`
/// says so. `seen_share` is told which share is done, up to 1.
MeasuredCosts measure_passes(Backend& backend, const base::Clock& clock, const MeasurePlan& plan,
                             const std::function<bool()>& stop,
                             const std::function<void(double)>& seen_share);

}  // namespace fullstop::engine
