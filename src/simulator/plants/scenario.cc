// The honest run that all scenarios start from, and the table of all.
#include "simulator/plants/scenario.h"

#include <utility>

namespace fullstop::simulator {

VirtualRun honest_run(std::vector<answer::Prompt> prompts, std::uint64_t seed) {
    VirtualRun run;
    run.seed = seed;
    run.experiment.prompts = prompts;
    run.experiment.budget = std::chrono::hours(
        24);  // virtual time costs nothing, and a trimmed plan would hide a plant
    run.deployed.script.prompts = std::move(prompts);
    run.deployed.script.seed = seed;
    // Most real servers are not bit-stable under load: a tenth of the answers takes another path.
    run.deployed.script.variance.at_load = 0.1;
    return run;
}

answer::ServerError server_says(int status, std::string type, std::string text) {
    answer::ServerError error;
    error.status = status;
    error.type = std::move(type);
    error.text = std::move(text);
    return error;
}

std::vector<Scenario> planted_causes() {
    std::vector<Scenario> all;
    for (auto* family : {settings_scenarios, memory_scenarios, runtime_scenarios, gateway_scenarios,
                         client_and_transport_scenarios})
        for (auto& scenario : family()) all.push_back(std::move(scenario));
    return all;
}

}  // namespace fullstop::simulator
