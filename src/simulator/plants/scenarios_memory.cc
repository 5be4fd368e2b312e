// KV pools that are too small, allocations that fail, and the preemption that is no cut, as
// experiments.
#include <utility>

#include "simulator/plants/plants.h"
#include "simulator/plants/scenario.h"

namespace fullstop::simulator {
namespace {

using enum answer::Cause;
using answer::Layer;
using judge::Verdict;

constexpr LengthRange kLong{120, 180, 0.1};
/// A prompt of 30 tokens and an answer of 180 and a last sentence: half of `from` users always fit
/// into this for each of `from`.
constexpr std::int64_t kPoolPerUser = 115;

Ending pool_error() {
    return error_ending(server_says(500, "server_error", "Context size has been exceeded."));
}

void small_pool(VirtualRun& run, int from, Ending ending) {
    run.deployed.script.lengths = kLong;
    run.deployed.script.pool = kPoolPerUser * from;
    plant(run.deployed, kv_pool(*run.deployed.script.pool, std::move(ending)));
}

const Expected kPool{{kKvPoolExhausted}, {Layer::kMemory}, {Verdict::kServingDefect}};
/// LocalAI says stop and tells of no pool: the cut is seen, its cause is not.
const Expected kQuiet{{kUnexplained}, {Layer::kUnknown}, {Verdict::kServingDefect}};
const Expected kMemory{{kOutOfMemory}, {Layer::kMemory}, {Verdict::kServingDefect}};

}  // namespace

std::vector<Scenario> memory_scenarios() {
    std::vector<Scenario> all;
    all.push_back(
        {"kv_pool_exhausted: llama-server, in-band error for all",
         kPool,
         {2, 4, 8},
         [](VirtualRun& run, int from, base::Random&) { small_pool(run, from, pool_error()); }});
    all.push_back({"kv_pool_exhausted: older llama-server, error field and [DONE]",
                   kPool,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       auto ending = pool_error();
                       ending.error_form = ErrorForm::kField;
                       ending.terminator = true;
                       small_pool(run, from, ending);
                   }});
    all.push_back({"kv_pool_exhausted: llama-server's native dialect",
                   kPool,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.api = answer::Api::kLlamaServer;
                       small_pool(run, from, pool_error());
                   }});
    all.push_back({"kv_pool_exhausted: not streamed",
                   kPool,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.experiment.stream = false;
                       small_pool(run, from, pool_error());
                   }});
    all.push_back({"unexplained: quiet cuts of a pool that nobody told, for all",
                   kQuiet,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kLocalAi;
                       small_pool(run, from, natural_ending());
                   }});
    all.push_back({"unexplained: quiet cuts of a pool that nobody told, no usage",
                   kQuiet,
                   {4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kLocalAi;
                       run.deployed.script.tells.usage = false;
                       small_pool(run, from, natural_ending());
                   }});
    all.push_back({"out_of_memory: CUDA allocation fails",
                   kMemory,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kVllm;
                       auto ending =
                           error_ending(server_says(500, "InternalServerError",
                                                    "CUDA out of memory. Tried to allocate 512.00 "
                                                    "MiB. GPU 0 has a total capacity of 7.79 GiB"));
                       ending.terminator = true;
                       plant(run.deployed, cut_some(from, 0.8, ending));
                   }});
    all.push_back({"out_of_memory: Ollama line stream",
                   kMemory,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.api = answer::Api::kOllama;
                       run.deployed.script.plays = Plays::kOllama;
                       plant(run.deployed,
                             cut_all(from, error_ending(server_says(
                                               500, "", "cudaMalloc failed: out of memory"))));
                   }});
    all.push_back({"preempted: paused and resumed, nothing cut",
                   {{},
                    {},
                    {Verdict::kLatencyOnly, Verdict::kUnaffected, Verdict::kSamplingVariance},
                    kPreempted},
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random& random) {
                       run.deployed.script.plays = Plays::kVllm;
                       plant(run.deployed,
                             preemption(from, 0.5,
                                        std::chrono::milliseconds(2000 + 1000 * random.below(20))));
                   }});
    return all;
}

}  // namespace fullstop::simulator
