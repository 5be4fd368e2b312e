// A measured cost table that is there before the user's own machine was measured. It is called a
// reference wherever it is used.
#pragma once

#include "engine/cost/cost_table.h"

namespace fullstop::simulator {

/// SmolLM2-135M's shape with Q8_0 weights, q8_0 KV, two threads of a shared AVX-512 server; times
/// within 20 %.
engine::CostTable reference_cost(engine::KvLayout layout);

}  // namespace fullstop::simulator
