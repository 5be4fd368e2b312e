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
ServeWords machine_words(const SimulateWords& words) {
    ServeWords serve;
    serve.model = words.model;
    serve.kv_type = words.kv_type;
    serve.kv_layout = words.kv_layout;
    serve.threads = words.threads;
    serve.max_sequences = static_cast<int>(words.max_sequences);
    return serve;
}

struct ChosenCost {
    engine::CostTable table;
    CostSource source = CostSource::kReference;
    std::string file;
};

base::Result<ChosenCost> choose_cost(const World& world, const SimulateWords& words) {
    const bool streams = words.kv_layout == "streams";
    if (words.cost == "reference")
        return ChosenCost{.table = simulator::reference_cost(streams),
                          .source = CostSource::kReference,
                          .file = {}};
    if (!words.cost.empty()) {
        auto table = read_cost_file(words.cost);
        if (!table) return std::unexpected(table.error());
        if (table->key.layout != words.kv_layout)
            return base::usage_error(
                fmt::format("--cost {} was measured in the {} layout", words.cost,
                            table->key.layout),
                fmt::format("give --kv-layout {}, or another table", table->key.layout));
        return ChosenCost{
            .table = std::move(*table), .source = CostSource::kFile, .file = words.cost};
    }
    const auto machine = read_serve(machine_words(words), world);
    if (!machine && words.model != "builtin") return std::unexpected(machine.error());
    if (machine) {
        const engine::CostKey key = cost_key(machine->load, streams);
        auto stored = stored_cost(world, key);
        if (!stored) return std::unexpected(stored.error());
        if (*stored)
            return ChosenCost{.table = std::move(**stored),
                              .source = CostSource::kCalibrated,
                              .file = cost_file(world, key)->string()};
    }
    return ChosenCost{
        .table = simulator::reference_cost(streams), .source = CostSource::kReference, .file = {}};
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

void run_settings(const World& world, const SimulateWords& words, Simulation& simulation,
                  simulator::EventLines* events) {
    Progress progress(world, simulation.plan.settings.size(), words.quiet);
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

base::Result<void> check_targets(const SimulateWords& words) {
    if (auto checked =
            check_documents({.json = words.json, .csv = {}, .junit = {}, .markdown = {}});
        !checked)
        return checked;
    if (words.json == "-" && words.events == "-")
        return base::usage_error("only one document can go to standard output (-)",
                                 "give --events a file name");
    return {};
}

int show(const World& world, const SimulateWords& words, const Simulation& simulation,
         const simulator::EventLines* events) {
    std::optional<base::Error> failed;
    if (!words.json.empty())
        if (auto written = write_document(world, words.json, simulation_json(simulation)); !written)
            failed = written.error();
    if (events != nullptr)
        if (auto written = write_document(world, words.events, events->text()); !written && !failed)
            failed = written.error();
    if (words.json != "-" && words.events != "-")
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

int simulate(const World& world, const SimulateWords& words) {
    if (words.calibrate) return calibrate(world, machine_words(words), words.quiet);
    auto options = read_simulate(words);
    if (!options) return fail(world, options.error());
    if (auto checked = check_targets(words); !checked) return fail(world, checked.error());
    auto cost = choose_cost(world, words);
    if (!cost) return fail(world, cost.error());
    Simulation simulation{.plan = std::move(options->plan),
                          .targets = options->targets,
                          .trace = words.trace,
                          .cost = std::move(cost->table),
                          .source = cost->source,
                          .cost_file = cost->file,
                          .rows = {},
                          .notes = std::move(options->notes),
                          .advice = {}};
    simulation.plan.host_memory = {static_cast<std::int64_t>(words.host_memory) /
                                   simulation.cost.kv_bytes_per_token.count};
    if (!words.no_noise) simulation.plan.noise = simulation.cost.model.fit_noise();
    if (!words.quiet)
        for (const std::string& note : simulation.notes)
            world.err << "fullstop: " << base::printable(note) << '\n';
    simulator::EventLines events;
    run_settings(world, words, simulation, words.events.empty() ? nullptr : &events);
    simulation.advice = simulator::advise(simulation.rows, simulation.targets);
    return show(world, words, simulation, words.events.empty() ? nullptr : &events);
}

}  // namespace

Command add_simulate(CLI::App& root, World& world) {
    CLI::App* app = root.add_subcommand(
        "simulate", "what so many users would see, setting by setting, without waiting for it");
    auto words = std::make_shared<SimulateWords>();
    declare_simulate(*app, *words);
    return {.app = app, .run = [&world, words] { return simulate(world, *words); }};
}

}  // namespace fullstop::cli
