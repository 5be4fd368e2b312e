// What the played product answers on its own endpoints: /v1/models, /props, /slots, /metrics,
// /api/... Truthful for what is played.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "simulator/server/server_script.h"

namespace fullstop::simulator {

/// The server's own gauges at one moment.
struct Gauges {
    int running = 0, waiting = 0;
    std::int64_t tokens_held = 0;
    std::int64_t prompt_tokens = 0, output_tokens = 0, preemptions = 0;
};

struct OwnAnswer {
    std::string body;
    std::string_view content_type;
};

/// Nothing: the product has no such endpoint (404).
std::optional<OwnAnswer> own_answer(std::string_view target, const ServerScript& script,
                                    const Gauges& gauges);

}  // namespace fullstop::simulator
