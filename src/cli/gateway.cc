// Reads the flags, listens, waits for a signal, drains.
#include "cli/gateway.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>
#include <utility>

#include "cli/gateway_options.h"
#include "cli/listen_address.h"
#include "cli/relaying.h"
#include "cli/version.h"

namespace fullstop::cli {
namespace {

void describe(const World& world, const GatewayFlags& flags) {
    const std::string idle = flags.idle ? fmt::format("after {:g} s of silence of the server (gateway_idle_timeout)", base::to_seconds(*flags.idle)) : "";
    world.err << fmt::format("relaying to {}; an answer can be cut here {}; no retries, no total limit, no budget\n", flags.upstream.text,
                             idle.empty() ? "by nothing but the end of this process" : idle);
}

int gateway(World& world, const GatewayWords& words) {
    const auto flags = read_gateway(words);
    if (!flags) return fail(world, flags.error());

    adapters::asio::raise_open_file_limit();
    adapters::asio::Loop loop;
    auto running =
        Relaying::start(loop, {.server = {.host = flags->host, .port = flags->port, .certificate_file = flags->tls_certificate, .key_file = flags->tls_key},
                               .gateway = {.upstream = flags->upstream,
                                           .version = kVersion,
                                           .idle = flags->idle,
                                           .drain = flags->drain,
                                           .entropy = static_cast<std::uint64_t>(world.clock.wall().unix_ns)}});
    if (!running) return fail(world, running.error());
    if (!flags->quiet) describe(world, *flags);
    world.out << fmt::format("listening on {}://{}:{}\n", flags->tls_key.empty() ? "http" : "https", shown_host(flags->host), (*running)->port()) << std::flush;

    int signals = 0, interrupted = 0;
    const auto watch = loop.watch_signals([&](int interrupts) {
        interrupted = interrupts;
        if (++signals > 1) return loop.stop();  // a second signal: do not wait
        if (!flags->quiet) world.err << "draining: no new requests, running answers may finish\n" << std::flush;
        (*running)->drain();
    });
    (*running)->run();
    return interrupted > 0 ? kExitInterrupted : 0;
}

}  // namespace

Command add_gateway(CLI::App& root, World& world) {
    CLI::App* app = root.add_subcommand("gateway", "an honest relay in front of a server: no cut answer ever looks whole");
    auto words = std::make_shared<GatewayWords>();
    declare_gateway(*app, *words);
    return {.app = app, .run = [&world, words] { return gateway(world, *words); }};
}

}  // namespace fullstop::cli
