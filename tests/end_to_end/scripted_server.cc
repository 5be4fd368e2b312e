// The scripted server of the simulator on a real socket, with one of its planted causes: what the
// virtual runs prove of judge, the program as a whole proves through it. Answers fullstop's
// built-in prompts; ends on SIGTERM.
//
//   scripted_server --list
//   scripted_server --scenario NAME --from CONCURRENCY [--seed S] [--faster F]
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "adapters/asio/loop.h"
#include "adapters/asio/server/server.h"
#include "probe/schedule.h"
#include "simulator/plants/scenario.h"
#include "simulator/server/scripted_server.h"

namespace {

using namespace fullstop;

/// "unplanted", or a name of simulator::planted_causes().
bool stage(const std::string& name, simulator::VirtualRun& run, int from, base::Random& random) {
    if (name == "unplanted") return true;
    const auto scenarios = simulator::planted_causes();
    const auto found = std::ranges::find(scenarios, name, &simulator::Scenario::name);
    if (found == scenarios.end()) return false;
    found->stage(run, from, random);
    return true;
}

int serve(simulator::Cast cast) {
    adapters::asio::Loop loop;
    simulator::ScriptedServer service(std::move(cast.script), std::move(cast.plants));
    const auto server = adapters::asio::Server::listen(loop, service, {});
    if (!server) {
        fmt::print(stderr, "scripted_server: {}\n", server.error().message);
        return 1;
    }
    const auto signals = loop.watch_signals([&](int) { loop.stop(); });
    fmt::print("listening on http://127.0.0.1:{}\n", (*server)->port());
    std::fflush(stdout);
    loop.run();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("A scripted server with a planted cause, on a port of its own.");
    std::string name = "unplanted";
    int from = 4;
    std::uint64_t seed = 1;
    double faster = 1;
    bool list = false;
    app.add_flag("--list", list, "the names of the scenarios");
    app.add_option("--scenario", name, "what is planted")->capture_default_str();
    app.add_option("--from", from, "concurrency at which it begins")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--seed", seed, "of lengths and plants")->capture_default_str();
    app.add_option("--faster", faster,
                   "factor on the speed of decoding; scenarios that plant a time limit need 1")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    CLI11_PARSE(app, argc, argv);
    if (list) {
        for (const auto& scenario : simulator::planted_causes()) fmt::print("{}\n", scenario.name);
        return 0;
    }
    base::Random random(seed);
    auto run = simulator::honest_run(probe::builtin_prompts(), seed);
    if (!stage(name, run, from, random)) {
        fmt::print(stderr, "scripted_server: there is no scenario '{}'; --list names them\n", name);
        return 2;
    }
    run.deployed.script.timing.itl =
        base::from_ms(base::to_ms(run.deployed.script.timing.itl) / faster);
    return serve(std::move(run.deployed));
}
