// Loads the model, listens, waits for a signal, drains.
#include "cli/serve/serve.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>
#include <utility>

#include "base/printable.h"
#include "cli/listen_address.h"
#include "cli/serve/config_file.h"
#include "cli/serve/serve_options.h"
#include "cli/serve/step_costs.h"
#include "cli/version.h"
#include "running/serving.h"

namespace fullstop::cli {
namespace {

/// Weights on their way into memory, on a terminal only.
std::function<void(double)> progress(const World& world, bool quiet) {
    if (quiet || !world.err_is_terminal) return {};
    return [&world, shown = -1](double done) mutable {
        const int percent = static_cast<int>(done * 100);
        if (percent == std::exchange(shown, percent)) return;
        world.err << fmt::format("\rloading the model: {} %{}", percent, done >= 1 ? "\n" : "")
                  << std::flush;
    };
}

void describe(const World& world, const engine::ModelFacts& facts, const ServeOptions& options) {
    world.err << fmt::format(
        "{}: {} answers at once, {} waiting at most; a window of {} tokens each, {} together ({} "
        "layout, {} KV, {} MiB); {}, {} thread{}; the same text at any "
        "load: {}\n",
        base::printable(facts.name), facts.max_sequences, options.max_queue, facts.window.count,
        facts.pool.count, to_string(facts.layout), to_string(facts.kv_type),
        (facts.kv_bytes_per_token * facts.pool.count).count >> 20, facts.device, facts.threads,
        facts.threads == 1 ? "" : "s", facts.load_invariant);
    if (!facts.no_chat.empty())
        world.err << fmt::format(
            "/v1/chat/completions is refused: {}; --chat-template FILE gives it one\n",
            base::printable(facts.no_chat));
}

int serve(World& world, CLI::App& app, const ServeFlags& flags) {
    if (auto applied = apply_config(app, flags.config); !applied)
        return fail(world, applied.error());
    auto options = read_serve(flags, world);
    if (!options) return fail(world, options.error());
    options->load.progress = progress(world, options->quiet);
    auto backend = adapters::llama::load(options->load);
    if (!backend) return fail(world, backend.error());

    auto cost = step_costs(world, *options, **backend);
    if (cost.interrupted) return kExitInterrupted;
    adapters::asio::raise_open_file_limit();
    adapters::asio::Loop loop;
    const auto wall = world.clock.wall();
    auto serving = running::Serving::start(
        loop, std::move(*backend),
        {.server =
             {.host = options->host, .port = options->port, .certificate_file = {}, .key_file = {}},
         .service = {.version = kVersion,
                     .drain = options->drain,
                     .max_queue = options->max_queue,
                     .admission = options->admission,
                     .slo_policy = options->slo_policy,
                     .ttft_target = options->ttft_target,
                     .access = options->access,
                     .entropy = static_cast<std::uint64_t>(wall.unix_ns),
                     .started = loop.clock().now(),
                     .started_wall = wall},
         .engine = {.max_queue = options->max_queue,
                    .admission = options->admission,
                    .host_memory = options->host_memory,
                    .ttft_target = options->ttft_target,
                    .itl_target = options->itl_target,
                    .slo_policy = options->slo_policy,
                    .cost = std::move(cost.model)}});
    if (!serving) return fail(world, serving.error());
    world.err << access_warnings(flags.access, options->host) << std::flush;
    if (!options->quiet) describe(world, (*serving)->facts(), *options);
    world.out << fmt::format("listening on http://{}:{}\n", shown_host(options->host),
                             (*serving)->port())
              << std::flush;

    int signals = 0, interrupted = 0;
    const auto watch = loop.watch_signals([&](int interrupts) {
        interrupted = interrupts;
        if (++signals > 1) return loop.stop();  // a second signal: do not wait
        if (!options->quiet)
            world.err << "draining: no new requests, running answers may finish\n" << std::flush;
        (*serving)->drain();
    });
    loop.run();
    return interrupted > 0 ? kExitInterrupted : 0;
}

}  // namespace

Command add_serve(CLI::App& root, World& world) {
    CLI::App* app = root.add_subcommand(
        "serve", "an honest OpenAI-compatible server: every answer says why it ended");
    auto flags = std::make_shared<ServeFlags>();
    declare_serve(*app, *flags);
    return {.app = app, .run = [&world, app, flags] { return serve(world, *app, *flags); }};
}

}  // namespace fullstop::cli
