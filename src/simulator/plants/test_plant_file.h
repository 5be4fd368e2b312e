// A plant as a file of tests/plants: how a server and the gateway before it behave, and what is
// true of them. tests/plants/README.md says what may stand in one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "simulator/world/virtual_probe.h"

namespace fullstop::simulator {

/// What must be said. Empty lists and absent bounds are not asked.
struct Truth {
    std::vector<std::string> verdicts, causes, layers, loads;
    std::vector<int> from;
    std::string at_least, at_most;  ///< confidence of the cause
    std::string known_miss;         ///< what is said instead, as long as it is
};

struct PlantFile {
    std::string name;  ///< of the file
    Truth truth;
    VirtualRun run;
};

/// The plant in `path` with this seed. A word that it does not know ends in an exception that names
/// it: a plant that plants nothing would pass for an honest server.
PlantFile read_plant(const std::filesystem::path& path, std::uint64_t seed);

/// tests/plants/*.toml, by name.
std::vector<std::filesystem::path> plant_files();

}  // namespace fullstop::simulator
