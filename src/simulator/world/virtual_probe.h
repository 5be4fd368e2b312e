// A whole probe run in virtual time: servers identified, experiment planned, load run and sampled,
// everything recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer/run.h"
#include "simulator/plants/plant.h"
#include "simulator/server/server_script.h"
#include "simulator/world/virtual_world.h"

namespace fullstop::simulator {

/// A server as it shall be built for one run.
struct Cast {
    ServerScript script;
    std::vector<std::unique_ptr<Plant>> plants;
};

struct VirtualRun {
    answer::Experiment experiment;  ///< its order is planned here
    answer::Api api = answer::Api::kOpenAiChat;
    Cast deployed;
    std::optional<Cast> control;  ///< the server behind the gateway
    bool with_control = true;
    bool observe = true;  ///< ask the server about itself, before, during and after
    /// As probe::Options::next_batch.
    std::function<std::optional<answer::Batch>(const answer::Run&)> next_batch;
    std::uint64_t seed = 1;
    base::Duration limit = std::chrono::hours(24);  ///< of virtual time
};

struct VirtualResult {
    answer::Run run;
    Outcome outcome = Outcome::kDone;
    std::uint64_t events = 0;
};

/// Same VirtualRun and seed, same run, byte for byte.
VirtualResult run_probe(VirtualRun plan);

}  // namespace fullstop::simulator
