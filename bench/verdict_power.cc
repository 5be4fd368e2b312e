// How often does a whole run find a planted cut, at what cost, and from which number of users on?
// Whole probes in virtual time against scripted servers, with the noise of real machines; nothing
// here is a formula. Cost 1 is the time of one answer alone; one at c users costs c^-0.4.
//
//   build/verdict_power [RUNS]      (default 100 of each row)
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "judge/verdict.h"
#include "probe/schedule.h"
#include "simulator/plants/fault.h"
#include "simulator/plants/scenario.h"

namespace {

using namespace fullstop;
using simulator::VirtualRun;

struct Row {
    std::string name;
    int from = 0;  ///< 0: nothing is cut
    std::function<void(VirtualRun&)> stage;
};

simulator::Fault cut(int from, double share, simulator::Ending ending) {
    simulator::Fault fault;
    fault.from = from;
    fault.share = share;
    fault.place = {0.2, 0.8};
    fault.ending = std::move(ending);
    return fault;
}

simulator::Ending failing() {
    return simulator::error_ending(
        simulator::server_says(500, "server_error", "the decoder gave up"));
}

Row labelled(int from, double share) {
    return {fmt::format("labelled, {:.0f} % from {} users on", share * 100, from), from,
            [=](VirtualRun& run) {
                run.deployed.plants.push_back(simulator::fault(cut(from, share, failing())));
            }};
}

Row quiet(int from, double share, double diverge) {
    return {fmt::format("quiet, {:.0f} % from {}, {:.0f} % of texts differ", share * 100, from,
                        diverge * 100),
            from, [=](VirtualRun& run) {
                run.deployed.script.variance.at_load = diverge;
                run.deployed.plants.push_back(
                    simulator::fault(cut(from, share, simulator::natural_ending())));
            }};
}

Row nothing(double diverge) {
    return {fmt::format("nothing cut, {:.0f} % of texts differ", diverge * 100), 0,
            [=](VirtualRun& run) { run.deployed.script.variance.at_load = diverge; }};
}

double cost(const answer::Run& run) {
    double sum = 0;
    for (const answer::Record& record : run.records)
        if (record.request.arm == "deployed") sum += std::pow(record.request.concurrency, -0.4);
    return sum;
}

struct Seen {
    int called = 0, exact = 0, load = 0, undecided = 0;
    std::vector<double> costs;
};

Seen play(const Row& row, int runs, bool beyond_the_plan) {
    Seen seen;
    for (int i = 0; i < runs; ++i) {
        auto run = simulator::honest_run(probe::builtin_prompts(), 500 + static_cast<unsigned>(i));
        run.with_control = false;
        run.deployed.script.noise.end_jitter = std::chrono::milliseconds(40);
        run.deployed.script.noise.any_order = true;
        run.deployed.script.lengths.open_share = 0.2;
        if (beyond_the_plan)
            run.next_batch = [](const answer::Run& so_far) { return judge::next_batch(so_far); };
        row.stage(run);
        const auto played = simulator::run_probe(std::move(run));
        const auto verdict = judge::judge(played.run).verdict;
        const bool called = verdict.value >= judge::Verdict::kPolicy;
        seen.called += called;
        seen.exact += called && verdict.from_concurrency == row.from;
        seen.load += verdict.load.value == judge::LoadBrings::kProven;
        seen.undecided += verdict.value == judge::Verdict::kInconclusive;
        seen.costs.push_back(cost(played.run));
    }
    std::ranges::sort(seen.costs);
    return seen;
}

}  // namespace

int main(int count, char** words) {
    const int runs = count > 1 ? std::max(1, std::atoi(words[1])) : 100;
    const std::vector<Row> rows = {labelled(8, 0.1), labelled(8, 0.3),   labelled(3, 0.3),
                                   labelled(5, 0.5), labelled(3, 1),     quiet(8, 0.1, 0),
                                   quiet(8, 0.3, 0), quiet(8, 0.3, 0.5), quiet(8, 0.3, 1),
                                   quiet(3, 0.3, 0), quiet(8, 0.6, 0.5), quiet(8, 0.6, 1),
                                   nothing(0),       nothing(0.5),       nothing(1)};
    fmt::print("{:<40} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}\n",
               "of " + std::to_string(runs) + " runs", "plan", "whole", "exact", "load", "open",
               "cost");
    for (const Row& row : rows) {
        const Seen plan = play(row, runs, false), whole = play(row, runs, true);
        fmt::print("{:<40} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6.0f}\n", row.name, plan.called,
                   whole.called, whole.exact, whole.load, whole.undecided,
                   whole.costs[whole.costs.size() / 2]);
        std::fflush(stdout);
    }
}
