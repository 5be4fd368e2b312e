// A setting is a backend, an engine and a load; nothing is shared between two of them but the plan.
#include "simulator/capacity/sweep.h"

#include <algorithm>
#include <utility>

#include "engine/limits.h"

namespace fullstop::simulator {

using base::Tokens;

namespace {

/// libllama rounds the window of a stream to this (adapters/llama/model/loading.cc).
constexpr std::int64_t kStreamStep = 256;
/// Enough answers a user that the beginning, when all ask at once, is a small part.
constexpr std::int64_t kRequestsPerUser = 8, kLeastRequests = 64;

}  // namespace

Tokens window_of(const SweepPlan& plan, Tokens pool) {
    const std::int64_t block = engine::kBlockTokens.count;
    if (plan.streams) return {pool.count / plan.max_sequences / kStreamStep * kStreamStep};
    return {pool.count / block * block};
}

ServingLoad load_of(const SweepPlan& plan, const Setting& setting) {
    if (plan.trace) {
        ServingLoad load = *plan.trace;
        load.users = setting.users.value_or(0);
        return load;
    }
    LoadShape shape = plan.shape;
    if (setting.users) shape.users = *setting.users;
    if (!plan.requests_given)
        shape.requests = std::max(kLeastRequests, setting.users.value_or(0) * kRequestsPerUser);
    return make_load(shape, plan.seed);
}

SweepRow run_setting(const SweepPlan& plan, const Setting& setting, const engine::CostTable& cost,
                     const std::function<bool(const ServingRun&)>& stop, ServingRun::Watch watch) {
    SweepRow row{.setting = setting, .window = window_of(plan, setting.pool), .summary = {}};
    const Tokens pool = plan.streams ? row.window * plan.max_sequences : row.window;
    SimulatedBackend backend({.seed = plan.seed,
                              .streams = plan.streams,
                              .pool = pool,
                              .window = row.window,
                              .max_sequences = plan.max_sequences,
                              .swap = cost.swap,
                              .natural = {},
                              .noise = plan.noise},
                             cost.model);
    const base::Bytes host = SimulatedBackend::kBytesPerToken * plan.host_memory.count;
    ServingRun run(backend,
                   {.max_queue = plan.max_queue,
                    .admission = setting.admission,
                    .host_memory = host,
                    .itl_target = plan.itl_target,
                    .cost = cost.model},
                   load_of(plan, setting), std::move(watch));
    bool more = true;
    while (more && !stop(run)) more = run.advance();
    row.finished = !more && !run.stuck();
    row.stuck = run.stuck();
    row.summary = summarize(run);
    return row;
}

}  // namespace fullstop::simulator
