// A kept table is better, since more was measured; a wrong or foreign one is reported and measured
// anew.
#include "cli/serve/step_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <ostream>
#include <utility>

#include "cli/output.h"
#include "cli/simulate/calibrate.h"
#include "cli/simulate/cost_file.h"
#include "engine/cost/measure_passes.h"
#include "report/text.h"
#include "running/interruptible.h"

namespace fullstop::cli {
namespace {

using base::Tokens;

/// Tokens in KV of each answer, where the costs of a step are told: an answer of usual length, half
/// done.
constexpr Tokens kUsualDepth{256};

StepCosts measured(const World& world, const ServeOptions& options, engine::Backend& backend) {
    if (!options.quiet)
        world.err << fmt::format(
            "measuring what steps cost here, for {} at most; a table that 'fullstop simulate "
            "--calibrate' kept spares it\n",
            report::short_time(engine::kBriefly.budget));
    std::atomic<double> share = 0;
    engine::MeasuredCosts costs;
    const bool drawn = !options.quiet && world.err_is_terminal;
    const bool interrupted = running::run_interruptibly(
        [&](const std::atomic<bool>& stop) {
            costs = engine::measure_passes(
                backend, world.clock, engine::kBriefly, [&] { return stop.load(); },
                [&](double done) { share = done; });
        },
        std::chrono::milliseconds(500),
        [&] {
            if (drawn)
                world.err << fmt::format("\rmeasured: {:.0f} %  ", 100 * share.load())
                          << std::flush;
        });
    if (drawn) world.err << "\r\x1b[K" << std::flush;
    if (interrupted) return {.model = {}, .interrupted = true};
    auto model = engine::CostModel::fit(std::move(costs.passes));
    if (model) return {.model = std::move(*model)};
    fail(world, {base::ErrorKind::kInternal,
                 "what steps cost could not be measured: " + model.error().message,
                 "latency targets have no effect; does the model answer at all?"});
    return {};
}

/// `answers` that each take their next token, with `rows` of another prompt beside them.
base::Duration step_time(const engine::CostModel& model, bool streams, std::int64_t answers,
                         std::int64_t rows) {
    engine::StepShape step(streams);
    const auto foreign = [&](std::int64_t others) {
        return streams ? Tokens{} : kUsualDepth * others;
    };
    for (std::int64_t i = 0; i < answers; ++i)
        step.add(engine::rows_at(kUsualDepth, 1, true, foreign(answers - 1)));
    step.add(engine::rows_at(Tokens{}, rows, true, foreign(answers)));
    return model.estimate(step);
}

void describe(const World& world, const ServeOptions& options, const engine::ModelFacts& facts,
              const engine::CostModel& model) {
    const bool streams = facts.layout == engine::KvLayout::kStreams;
    const std::int64_t all = facts.max_sequences, beside = std::max<std::int64_t>(1, all - 1),
                       piece = engine::kLeastPrefillRows.count;
    const double tokens = base::to_ms(step_time(model, streams, all, 0)),
                 with_prompt = base::to_ms(step_time(model, streams, beside, piece));
    world.err << fmt::format(
        "a step takes about {:.3g} ms for the next token of each of {}, {:.3g} ms with {} rows of "
        "a prompt beside {}\n",
        tokens, report::counted(all, "answer"), with_prompt, piece, beside);
    if (options.itl_target && base::to_ms(*options.itl_target) < std::max(tokens, with_prompt))
        world.err << fmt::format(
            "fullstop: --itl-target {:.0f} cannot be met with {} at once here; --max-sequences "
            "lowers their number\n",
            base::to_ms(*options.itl_target), report::counted(all, "answer"));
}

}  // namespace

StepCosts step_costs(const World& world, const ServeOptions& options, engine::Backend& backend) {
    if (!options.itl_target && !options.ttft_target) return {};
    StepCosts costs;
    auto table = stored_cost(world, cost_key(options.load, backend.facts().layout));
    if (!table) fail(world, table.error());
    if (table && *table)
        costs.model = std::move((*table)->model);
    else
        costs = measured(world, options, backend);
    if (costs.model && !options.quiet) describe(world, options, backend.facts(), *costs.model);
    return costs;
}

}  // namespace fullstop::cli
