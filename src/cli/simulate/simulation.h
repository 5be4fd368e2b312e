// A whole simulation as a value, and its two renderings: a table to decide from and the document
// fullstop.simulation/1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/cost/cost_table.h"
#include "simulator/capacity/sweep.h"

namespace fullstop::cli {

inline constexpr std::string_view kSimulationSchema = "fullstop.simulation/1";

enum class CostSource { kCalibrated, kFile, kReference };

struct Simulation {
    simulator::SweepPlan plan;
    simulator::Targets targets;
    std::string trace;  ///< name of the file; "": none
    engine::CostTable cost;
    CostSource source = CostSource::kReference;
    std::string cost_file;  ///< "": built in
    std::vector<simulator::SweepRow> rows;
    bool interrupted = false;
    std::vector<std::string> notes;
    simulator::Advice advice;
};

std::string simulation_json(const Simulation& simulation);
/// Not wider than `columns` where that can be done.
std::string simulation_table(const Simulation& simulation, std::size_t columns);

}  // namespace fullstop::cli
