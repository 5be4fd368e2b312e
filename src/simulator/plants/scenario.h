// A planted cause as a whole experiment: which server, which plants, from which concurrency on, and
// what judge must say.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/cause.h"
#include "judge/verdict.h"
#include "simulator/world/virtual_probe.h"

namespace fullstop::simulator {

/// What judge must conclude. Several words are given only where the contract's own table allows
/// several.
struct Expected {
    std::vector<answer::Cause> causes;  ///< of the run; empty: the run has none
    std::vector<answer::Layer> layers;
    std::vector<judge::Verdict> verdicts;
    /// For what shortens nothing: a fifth of the answers at the onset's level must carry this cause
    /// (a pause stands beside the cause of the end).
    std::optional<answer::Cause> of_answers = {};
};

struct Scenario {
    std::string_view name;
    Expected expected;
    std::vector<int> onsets;  ///< concurrencies at which it may begin; 1: whatever the load
    /// Prompts and seed in, a run out. `from` is one of onsets.
    std::function<void(VirtualRun& run, int from, base::Random& random)> stage;
};

/// Every planted cause, in the order of the contract's table.
std::vector<Scenario> planted_causes();

std::vector<Scenario> settings_scenarios();
std::vector<Scenario> memory_scenarios();
std::vector<Scenario> runtime_scenarios();
std::vector<Scenario> gateway_scenarios();
std::vector<Scenario> client_and_transport_scenarios();

/// A run before anything is planted: an honest server with slots for all, prompts with checks,
/// levels 1, 2, 4, 8, two seeds.
VirtualRun honest_run(std::vector<answer::Prompt> prompts, std::uint64_t seed);

/// An error as servers write it.
answer::ServerError server_says(int status, std::string type, std::string text);

/// Appends plants to the deployed server (a plant is not copyable, so no braces).
template <class... Plants>
void plant(Cast& cast, Plants... plants) {
    (cast.plants.push_back(std::move(plants)), ...);
}

}  // namespace fullstop::simulator
