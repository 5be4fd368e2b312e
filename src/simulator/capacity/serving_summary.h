// A simulated run in the numbers that people decide by.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/capacity/serving_run.h"

namespace fullstop::simulator {

struct Spread {
    double p50 = 0, p99 = 0, max = 0;
};

struct ServingSummary {
    std::int64_t requests = 0;
    std::int64_t whole = 0;         ///< ended by themselves or at the limit that was asked for
    std::int64_t refused = 0;       ///< too large for the window, or the queue was full
    std::int64_t failed = 0;        ///< everything else that ended
    std::optional<Spread> ttft_ms;  ///< arrival to first token
    std::optional<Spread> itl_ms;   ///< between tokens, of all answers together
    double longest_silence_ms = 0;  ///< that any client saw: before the first token or between two
    double tokens_per_s = 0;  ///< output of whole answers over the time until the last one ended
    std::int64_t output_tokens = 0;  ///< of whole answers
    std::int64_t swaps = 0, recomputes = 0,
                 preempted_answers =
                     0;           ///< pauses by what became of KV, and how many answers had one
    double longest_pause_ms = 0;  ///< of one answer, in all
    double kv_utilisation = 0;    ///< mean share of the pool that held tokens while steps ran
    std::int64_t steps = 0, rows = 0;
    base::Duration elapsed{};  ///< virtual
};

/// Of what has ended by now.
ServingSummary summarize(const ServingRun& run);

}  // namespace fullstop::simulator
