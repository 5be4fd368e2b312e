// Reads flags and file, listens, waits for a signal, drains; on SIGHUP it reads the file again.
#include "cli/gateway/gateway.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <ostream>
#include <utility>

#include "base/printable.h"
#include "cli/gateway/deadline_table.h"
#include "cli/gateway/gateway_options.h"
#include "cli/gateway/journal.h"
#include "cli/gateway/policy_text.h"
#include "cli/input_file.h"
#include "cli/listen_address.h"
#include "cli/version.h"
#include "running/relaying.h"

namespace fullstop::cli {
namespace {

/// Set by the signal's handler, looked at by the loop.
volatile std::sig_atomic_t reload_wanted = 0;
constexpr base::Duration kLookAround = std::chrono::milliseconds(200);

base::Result<GatewaySettings> settings_of(const World& world, const GatewayFlags& flags) {
    std::optional<std::string> text;
    if (!flags.config.empty()) {
        auto read = read_input(flags.config, kMaxConfigBytes, "configuration",
                               "check the name and its permissions");
        if (!read)
            return std::unexpected(base::Error{
                read.error().kind, "--config: " + read.error().message, read.error().hint});
        text = std::move(*read);
    }
    auto settings = read_gateway(flags, text);
    if (!settings) return settings;
    if (auto keys = read_api_keys(settings->policy, world.env); !keys)
        return std::unexpected(keys.error());
    auto access = read_access(settings->access);
    if (!access) return std::unexpected(access.error());
    settings->policy.access = std::move(*access);
    return settings;
}

/// A file that is wrong changes nothing: the gateway goes on as it was.
void reload(const World& world, const GatewayFlags& flags, const GatewaySettings& now,
            running::Relaying& running) {
    auto settings = settings_of(world, flags);
    if (!settings) {
        world.err << fmt::format("SIGHUP: {}; going on with the settings as they were\n",
                                 base::printable(settings.error().message))
                  << std::flush;
        return;
    }
    if (settings->host != now.host || settings->port != now.port)
        world.err << "SIGHUP: another address to listen on needs a new start; kept as it was\n";
    world.err << access_warnings(settings->access, settings->host);
    if (!flags.quiet)
        world.err << "SIGHUP: " << base::printable_lines(policy_line(settings->policy));
    world.err << std::flush;
    running.configure(std::move(settings->policy));
}

int relay(const World& world, const GatewayFlags& flags, const GatewaySettings& settings) {
    adapters::asio::raise_open_file_limit();
    adapters::asio::Loop loop;
    auto journal = Journal::open(world, flags.store, settings);
    if (!journal) return fail(world, journal.error());
    auto running = running::Relaying::start(
        loop, {.server = {.host = settings.host,
                          .port = settings.port,
                          .certificate_file = flags.tls_certificate,
                          .key_file = flags.tls_key},
               .gateway = {.policy = settings.policy,
                           .version = kVersion,
                           .entropy = static_cast<std::uint64_t>(world.clock.wall().unix_ns),
                           .started = loop.clock().now(),
                           .ended = journal->keeper(),
                           .records = journal->counts(),
                           .fault = [&world](const gateway::Fault& fault) {
                               world.err << gateway::fault_line(fault) << std::flush;
                           }}});
    if (!running) return fail(world, running.error());
    reload_wanted = 0;
    std::signal(SIGHUP, [](int) { reload_wanted = 1; });
    world.err << access_warnings(settings.access, settings.host) << std::flush;
    if (!flags.quiet)
        world.err << base::printable_lines(policy_line(settings.policy)) << std::flush;
    world.out << fmt::format("listening on {}://{}:{}\n", flags.tls_key.empty() ? "http" : "https",
                             shown_host(settings.host), (*running)->port())
              << std::flush;

    int signals = 0, interrupted = 0;
    const auto watch = loop.watch_signals([&](int interrupts) {
        interrupted = interrupts;
        if (++signals > 1) return loop.stop();  // a second signal: do not wait
        if (!flags.quiet)
            world.err << "draining: no new requests, running answers may finish\n" << std::flush;
        (*running)->drain();
    });
    const auto look = loop.every(kLookAround, [&](base::Instant) {
        journal->look();
        if (reload_wanted == 0) return;
        reload_wanted = 0;
        reload(world, flags, settings, **running);
    });
    (*running)->run();
    journal->close();
    return interrupted > 0 ? kExitInterrupted : 0;
}

int gateway(const World& world, const GatewayFlags& flags) {
    const auto settings = settings_of(world, flags);
    if (!settings) return fail(world, settings.error());
    if (flags.check) {
        world.out << base::printable_lines(policy_text(*settings)) << std::flush;
        return 0;
    }
    if (flags.explain_deadlines)
        return explain_deadlines(world, settings->policy, flags.tokens_per_second);
    return relay(world, flags, *settings);
}

}  // namespace

Command add_gateway(CLI::App& root, World& world) {
    CLI::App* app = root.add_subcommand(
        "gateway", "an honest relay in front of servers: no cut answer ever looks whole");
    auto flags = std::make_shared<GatewayFlags>();
    declare_gateway(*app, *flags);
    return {.app = app, .run = [&world, flags] { return gateway(world, *flags); }};
}

}  // namespace fullstop::cli
