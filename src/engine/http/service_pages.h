// What `fullstop serve` says of itself: the list of models and /fullstop/status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "answer/cause.h"
#include "base/time.h"
#include "engine/answer_end.h"
#include "engine/backend.h"
#include "engine/scheduling/admission.h"
#include "engine/scheduling/slo.h"

namespace fullstop::engine {

struct ServiceState {
    const std::string& version;
    std::size_t max_queue = 0;
    AdmissionMode admission = AdmissionMode::kReserve;
    SloPolicy slo_policy = SloPolicy::kIgnore;
    std::optional<base::Duration> ttft_target = {};
    bool draining = false;
    const Occupancy& occupancy;
    const std::map<answer::Cause, std::int64_t>& ends;
};

/// OpenAI's list, with the one model that is served.
std::string models_body(const ModelFacts& facts, base::WallTime started);
std::string status_body(const ModelFacts& facts, const ServiceState& state);

}  // namespace fullstop::engine
