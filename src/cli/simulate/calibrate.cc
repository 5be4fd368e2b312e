// Loads as serve does, with a pool that eight sequences of 512 tokens fit, and keeps the fitted
// table.
#include "cli/simulate/calibrate.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "base/printable.h"
#include "cli/simulate/cost_file.h"
#include "cli/version.h"
#include "engine/cost/measure_passes.h"
#include "engine/cost/trial_run.h"
#include "report/text.h"
#include "running/interruptible.h"

namespace fullstop::cli {
namespace {

constexpr base::Duration kTrialBudget = std::chrono::seconds(30);
constexpr base::Tokens kUnifiedPool{5120}, kStreamWindow{1024};
/// A fit that misses by more says that the machine was busy, or that its times follow another law.
constexpr double kPoorFit = 0.25;

struct Measurement {
    base::Result<engine::CostModel> model = base::internal_error("no pass was computed");
    std::vector<engine::SwapPoint> swaps;
    std::optional<engine::TrialRun> trial;
};

/// True: it was interrupted.
bool measure(const World& world, engine::Backend& backend, bool drawn, Measurement& out) {
    std::atomic<double> share = 0;
    const bool interrupted = running::run_interruptibly(
        [&](const std::atomic<bool>& stop) {
            const auto stopped = [&] { return stop.load(); };
            engine::MeasuredCosts costs =
                engine::measure_passes(backend, world.clock, engine::kThoroughly, stopped,
                                       [&](double done) { share = 0.8 * done; });
            out.swaps = std::move(costs.swaps);
            if (stopped() || costs.passes.empty()) return;
            out.model = engine::CostModel::fit(std::move(costs.passes));
            if (out.model)
                out.trial =
                    engine::trial_run(backend, world.clock, *out.model, kTrialBudget, stopped);
        },
        std::chrono::seconds(1),
        [&] {
            if (drawn)
                world.err << fmt::format("\rmeasured: {:.0f} %  ", 100 * share.load())
                          << std::flush;
        });
    if (drawn) world.err << "\r\x1b[K" << std::flush;
    return interrupted;
}

}  // namespace

engine::CostKey cost_key(const adapters::llama::LoadOptions& options, engine::KvLayout layout) {
    // What a GPU does has times of its own.
    std::string gpu;
    if (options.gpu_layers.value_or(0) > 0)
        gpu = fmt::format(", {} layers on GPU", *options.gpu_layers);
    if (!options.gpu_layers && adapters::llama::has_gpu()) gpu = ", layers on GPU as they fit";
    return {.model = options.model.stem().string(),
            .build = fmt::format("{} {}{}", kVersion, kBuild, gpu),
            .layout = layout,
            .kv_type = options.kv_type,
            .threads = options.threads};
}

int calibrate(const World& world, const ServeFlags& flags, bool quiet) {
    auto options = read_serve(flags, world);
    if (!options) return fail(world, options.error());
    // simulate knows no "auto" (read_simulate).
    options->load.layout = engine::kv_layout_of(flags.kv_layout);
    const engine::CostKey key = cost_key(options->load, *options->load.layout);
    if (auto file = cost_file(world, key); !file) return fail(world, file.error());
    options->load.kv_tokens = key.layout == engine::KvLayout::kStreams
                                  ? kStreamWindow * options->load.max_sequences
                                  : kUnifiedPool;
    auto backend = adapters::llama::load(options->load);
    if (!backend) return fail(world, backend.error());
    if (!quiet)
        world.err << fmt::format(
            "measuring {}, {} layout, {} KV, {}: at most {}; leave the machine alone meanwhile\n",
            base::printable(key.model), to_string(key.layout), to_string(key.kv_type),
            report::counted(key.threads, "thread"),
            report::short_time(engine::kThoroughly.budget + kTrialBudget));
    Measurement measurement;
    if (measure(world, **backend, !quiet && world.err_is_terminal, measurement)) {
        world.err
            << "fullstop: interrupted; a half measured table would mislead, so none was kept\n";
        return kExitInterrupted;
    }
    auto& model = measurement.model;
    if (!model)
        return fail(world, {base::ErrorKind::kInternal,
                            "nothing could be measured: " + model.error().message,
                            "does 'fullstop serve' run with this model?"});
    const engine::CostTable table{
        .key = key,
        .measured = "measured " + report::rfc3339(world.clock.wall()).substr(0, 19) + "Z",
        .kv_bytes_per_token = (*backend)->facts().kv_bytes_per_token,
        .model = std::move(*model),
        .swap = engine::SwapCost(std::move(measurement.swaps)),
        .step_error = measurement.trial.transform(
            [](const engine::TrialRun& trial) { return trial.mean_miss; })};
    const auto file = store_cost(world, table);
    if (!file) return fail(world, file.error());
    world.out << fmt::format("{} passes measured; the fit misses them by {:.1f} % on average.\n",
                             table.model.points().size(), 100 * table.model.fit_error());
    if (const auto& trial = measurement.trial)
        world.out << fmt::format(
            "A trial of {} steps with 8 answers at once: a step is missed by {:.1f} % on average "
            "({:.1f} % in the median), all together by {:+.1f} %.\n",
            trial->steps, 100 * trial->mean_miss, 100 * trial->median_miss,
            100 * trial->total_miss);
    world.out << fmt::format("Kept in {}\n", file->string());
    if (table.model.fit_error() > kPoorFit)
        world.err << "fullstop: that is a poor fit: the machine was busy, or its times follow "
                     "another law; measure again when it is idle\n";
    return 0;
}

}  // namespace fullstop::cli
