// Our own deadlines, and connections that break, as experiments.
#include <utility>

#include "simulator/plants/plants.h"
#include "simulator/plants/scenario.h"

namespace fullstop::simulator {
namespace {

using enum answer::Cause;
using answer::Layer;
using judge::Verdict;
using std::chrono::seconds;

const Expected kBroken{{kConnectionBroken}, {Layer::kTransport}, {Verdict::kServingDefect}};

}  // namespace

std::vector<Scenario> client_and_transport_scenarios() {
    std::vector<Scenario> all;
    all.push_back({"client_deadline: our own limit on the whole answer",
                   {{kClientDeadline}, {Layer::kClient}, {Verdict::kPolicy}},
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       auto& script = run.deployed.script;
                       script.lengths = {150, 200, 0.05};
                       script.timing.itl_growth = 0.6;
                       const double step =
                           base::to_ms(script.timing.itl) * script.timing.growth(from / 2);
                       run.experiment.client_deadline = base::from_ms(step * 220 + 200);
                   }});
    all.push_back({"client_idle_timeout: our own limit on silence",
                   {{kClientIdleTimeout}, {Layer::kClient}, {Verdict::kPolicy}},
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.experiment.client_idle = seconds(5);
                       plant(run.deployed, stall(from, 0.8, seconds(20), {}));
                   }});
    all.push_back({"connection_broken: reset at a random point",
                   kBroken,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       plant(run.deployed, cut_some(from, 0.8, silent_ending(BodyEnd::kReset)));
                   }});
    all.push_back({"connection_broken: end of file inside a chunk",
                   kBroken,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       plant(run.deployed,
                             cut_some(from, 0.8, silent_ending(BodyEnd::kFinInsideChunk)));
                   }});
    return all;
}

}  // namespace fullstop::simulator
