// The same load on many settings, and which of them would do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/cost/cost_table.h"
#include "engine/limits.h"
#include "engine/scheduling/admission.h"
#include "simulator/capacity/serving_load.h"
#include "simulator/capacity/serving_run.h"
#include "simulator/capacity/serving_summary.h"

namespace fullstop::simulator {

/// Most settings of one sweep: more rows than anybody reads.   usage error
inline constexpr std::size_t kMaxSettings = 1000;

struct Setting {
    base::Tokens pool{1024};
    std::optional<std::int64_t> users;  ///< absent: requests come by themselves
    engine::AdmissionMode admission = engine::AdmissionMode::kReserve;
    bool operator==(const Setting&) const = default;
};

struct SweepPlan {
    std::vector<Setting> settings;
    std::optional<ServingLoad> trace;  ///< the load itself; else:
    LoadShape shape;                   ///< `users` and, unless given, `requests` follow the setting
    bool requests_given = false;
    bool streams = false;
    std::int64_t max_sequences = 8;
    std::size_t max_queue = engine::kDefaultMaxQueue;
    base::Tokens host_memory{0};  ///< tokens of paused answers that it holds
    std::optional<base::Duration>
        itl_target{};  ///< as for serve: prompts are computed in pieces that allow it
    double noise = 0;
    std::uint64_t seed = 1;
};

struct SweepRow {
    Setting setting;
    base::Tokens window;
    ServingSummary summary;
    bool finished = false;  ///< false: it was interrupted, or the engine went round in circles
    bool stuck = false;
};

/// Tokens that one answer may hold in a pool of this size: all of it, or its own stream's share in
/// steps of 256, as adapters/llama makes it. 0: the pool is too small for so many streams.
base::Tokens window_of(const SweepPlan& plan, base::Tokens pool);

ServingLoad load_of(const SweepPlan& plan, const Setting& setting);

/// Simulates one setting, until it is over or `stop` says so; it is asked after every step.
SweepRow run_setting(const SweepPlan& plan, const Setting& setting, const engine::CostTable& cost,
                     const std::function<bool(const ServingRun&)>& stop,
                     ServingRun::Watch watch = {});

struct Targets {
    std::optional<double> ttft_ms, itl_ms;  ///< at the 99th percentile
};

/// Pool and admission that would do for all loads of the sweep, and why, as sentences. Without
/// targets: the smallest pool that comes close to the best of every load.
struct Advice {
    std::optional<base::Tokens> pool;  ///< absent: none would do
    std::optional<engine::AdmissionMode> admission;
    std::string text;
};
Advice advise(const std::vector<SweepRow>& rows, const Targets& targets);

}  // namespace fullstop::simulator
