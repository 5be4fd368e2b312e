// Chooses the cost table, runs the settings one after the other while Ctrl-C is watched, and shows
// what came of them.
#include "cli/simulate/simulate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <mutex>
#include <ostream>
#include <utility>

#include "base/printable.h"
#include "cli/output.h"
#include "cli/serve/serve_options.h"
#include "cli/simulate/calibrate.h"
#include "cli/simulate/cost_file.h"
#include "cli/simulate/simulate_options.h"
#include "cli/simulate/simulation.h"
#include "cli/version.h"
#include "running/interruptible.h"
#include "simulator/capacity/event_lines.h"
#include "simulator/capacity/reference_cost.h"

namespace fullstop::cli {
namespace {

/// The same words mean the same model, layout and threads as for serve.
ServeFlags machine_flags(const SimulateFlags& flags) {
    ServeFlags serve;
    serve.model = flags.model;
    serve.kv_type = flags.kv_type;
    serve.kv_layout = flags.kv_layout;
    serve.threads = flags.threads;
    serve.max_sequences = static_cast<int>(flags.max_sequences);
    return serve;
}

struct ChosenCost {
    engine::CostTable table;
    CostSource source = CostSource::kReference;
    std::string file;
};

base::Result<ChosenCost> choose_cost(const World& world, const SimulateFlags& flags) {
    const auto layout = engine::kv_layout_of(flags.kv_layout).value();  // read_simulate checked it
    if (flags.cost == "reference")
        return ChosenCost{.table = simulator::reference_cost(layout),
                          .source = CostSource::kReference,
                          .file = {}};
    if (!flags.cost.empty()) {
        auto table = read_cost_file(flags.cost);
        if (!table) return std::unexpected(table.error());
        if (table->key.layout != layout)
            return base::usage_error(
                fmt::format("--cost {} was measured in the {} layout", flags.cost,
                            to_string(table->key.layout)),
                fmt::format("give --kv-layout {}, or another table", to_string(table->key.layout)));
        return ChosenCost{
            .table = std::move(*table), .source = CostSource::kFile, .file = flags.cost};
    }
    const auto machine = read_serve(machine_flags(flags), world);
    if (!machine && flags.model != "builtin") return std::unexpected(machine.error());
    if (machine) {
        const engine::CostKey key = cost_key(machine->load, layout);
        auto stored = stored_cost(world, key);
        if (!stored) return std::unexpected(stored.error());
        if (*stored)
            return ChosenCost{.table = std::move(**stored),
                              .source = CostSource::kCalibrated,
                              .file = cost_file(world, key)->string()};
    }
    return ChosenCost{
        .table = simulator::reference_cost(layout), .source = CostSource::kReference, .file = {}};
}

/// Settings done and the share of the present one, drawn over itself, on a terminal only.
class Progress {
public:
    Progress(const World& world, std::size_t settings, bool quiet)
        : world_(world), settings_(settings), shown_(!quiet && world.err_is_terminal) {}
    void at(std::size_t setting, double share) {
        const std::lock_guard lock(mutex_);
        setting_ = setting, share_ = share;
    }
    void draw() {
        if (!shown_) return;
        const std::lock_guard lock(mutex_);
        drawn_ = true;
        world_.err << fmt::format("\rsimulating: setting {} of {}, {:.0f} %  ", setting_ + 1,
                                  settings_, 100 * share_)
                   << std::flush;
    }
    void clear() {
        if (drawn_) world_.err << "\r\x1b[K" << std::flush;
    }

private:
    const World& world_;
    std::size_t settings_, setting_ = 0;
    double share_ = 0;
    bool shown_, drawn_ = false;
    std::mutex mutex_;  ///< the simulation runs on another thread than the display
};

void run_settings(const World& world, const SimulateFlags& flags, Simulation& simulation,
                  simulator::EventLines* events) {
    Progress progress(world, simulation.plan.settings.size(), flags.quiet);
    simulation.interrupted = running::run_interruptibly(
        [&](const std::atomic<bool>& stop) {
            for (std::size_t i = 0; i < simulation.plan.settings.size() && !stop; ++i) {
                if (events != nullptr) events->begin(simulation.plan.settings[i]);
                simulation.rows.push_back(simulator::run_setting(
                    simulation.plan, simulation.plan.settings[i], simulation.cost,
                    [&](const simulator::ServingRun& run) {
                        progress.at(i, static_cast<double>(run.ended()) /
                                           static_cast<double>(run.requests()));
                        return stop.load();
                    },
                    events != nullptr ? events->watch() : simulator::ServingRun::Watch{}));
                if (simulation.rows.back().stuck) return;
            }
        },
        std::chrono::seconds(1), [&] { progress.draw(); });
    progress.clear();
    if (!simulation.rows.empty() && !simulation.rows.back().finished &&
        simulation.rows.back().summary.requests == 0)
        simulation.rows.pop_back();
}

base::Result<void> check_targets(const SimulateFlags& flags) {
    if (auto checked =
            check_documents({.json = flags.json, .csv = {}, .junit = {}, .markdown = {}});
        !checked)
        return checked;
    if (flags.json == "-" && flags.events == "-")
        return base::usage_error("only one document can go to standard output (-)",
                                 "give --events a file name");
    return {};
}

int show(const World& world, const SimulateFlags& flags, const Simulation& simulation,
         const simulator::EventLines* events) {
    std::optional<base::Error> failed;
    if (!flags.json.empty())
        if (auto written = write_document(world, flags.json, simulation_json(simulation)); !written)
            failed = written.error();
    if (events != nullptr)
        if (auto written = write_document(world, flags.events, events->text()); !written && !failed)
            failed = written.error();
    if (flags.json != "-" && flags.events != "-")
        world.out << simulation_table(simulation, static_cast<std::size_t>(world.columns))
                  << std::flush;
    if (failed) return fail(world, *failed);
    for (const simulator::SweepRow& row : simulation.rows)
        if (row.stuck)
            return fail(
                world, {base::ErrorKind::kInternal,
                        fmt::format("the engine went round in circles with --kv-tokens {} "
                                    "--admission {} --seed {}: a bug",
                                    row.setting.pool.count,
                                    engine::to_string(row.setting.admission), simulation.plan.seed),
                        "please report this with the command you ran"});
    return simulation.interrupted ? kExitInterrupted : 0;
}

int simulate(const World& world, const SimulateFlags& flags) {
    if (flags.calibrate) return calibrate(world, machine_flags(flags), flags.quiet);
    auto options = read_simulate(flags);
    if (!options) return fail(world, options.error());
    if (auto checked = check_targets(flags); !checked) return fail(world, checked.error());
    auto cost = choose_cost(world, flags);
    if (!cost) return fail(world, cost.error());
    Simulation simulation{.plan = std::move(options->plan),
                          .targets = options->targets,
                          .trace = flags.trace,
                          .cost = std::move(cost->table),
                          .source = cost->source,
                          .cost_file = cost->file,
                          .rows = {},
                          .notes = std::move(options->notes),
                          .advice = {}};
    simulation.plan.host_memory = {static_cast<std::int64_t>(flags.host_memory) /
                                   simulation.cost.kv_bytes_per_token.count};
    if (!flags.no_noise) simulation.plan.noise = simulation.cost.model.fit_noise();
    if (!flags.quiet)
        for (const std::string& note : simulation.notes)
            world.err << "fullstop: " << base::printable(note) << '\n';
    simulator::EventLines events;
    run_settings(world, flags, simulation, flags.events.empty() ? nullptr : &events);
    simulation.advice = simulator::advise(simulation.rows, simulation.targets);
    return show(world, flags, simulation, flags.events.empty() ? nullptr : &events);
}

}  // namespace

Command add_simulate(CLI::App& root, World& world) {
    CLI::App* app = root.add_subcommand(
        "simulate", "what so many users would see, setting by setting, without waiting for it");
    auto flags = std::make_shared<SimulateFlags>();
    declare_simulate(*app, *flags);
    return {.app = app, .run = [&world, flags] { return simulate(world, *flags); }};
}

}  // namespace fullstop::cli
