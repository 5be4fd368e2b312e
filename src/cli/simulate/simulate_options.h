// The flags of `fullstop simulate`, declared and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/world.h"
#include "simulator/capacity/sweep.h"

namespace fullstop::cli {

/// As the user wrote them.
struct SimulateFlags {
    std::string users, kv_tokens = "1024..8192", admission = "reserve,forecast,eager", trace;
    std::string prompt_tokens = "100", output_tokens = "250", max_tokens = "512",
                kv_layout = "unified";
    std::optional<double> rate;
    bool burst = false;
    std::optional<std::int64_t> requests;
    std::int64_t shared_tokens = 0, max_sequences = 8, max_queue = engine::kDefaultMaxQueue,
                 seed = 1;
    std::uint64_t host_memory =
        static_cast<std::uint64_t>(engine::kDefaultHostMemory.count);  ///< bytes
    std::optional<double> ttft_target, itl_target;
    // the machine
    std::string cost, model = "builtin", kv_type = "q8_0";
    int threads = 0;
    bool calibrate = false, no_noise = false;
    // where it goes
    std::string json, events;
    bool quiet = false;
};

struct SimulateOptions {
    simulator::SweepPlan plan;  ///< noise is set when the cost table is known
    simulator::Targets targets;
    std::vector<std::string> notes;  ///< of the trace
};

void declare_simulate(CLI::App& app, SimulateFlags& flags);
/// Reads the trace, if one is named. Errors name the flag, or the trace's line and field.
base::Result<SimulateOptions> read_simulate(const SimulateFlags& flags);

/// "8", "1,2,4", "1024..8192" (doubling; the last one is always in it). Error naming `option`.
base::Result<std::vector<std::int64_t>> parse_sweep(const std::string& text,
                                                    const std::string& option, std::int64_t low,
                                                    std::int64_t high);

}  // namespace fullstop::cli
