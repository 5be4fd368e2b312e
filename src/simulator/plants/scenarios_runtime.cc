// Schedulers, queues, guards, dying engines and lost output, as experiments.
#include <utility>

#include "simulator/plants/plants.h"
#include "simulator/plants/scenario.h"

namespace fullstop::simulator {
namespace {

using enum answer::Cause;
using answer::Layer;
using judge::Verdict;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kMost =
    0.8;  ///< share of the answers that a plant hits, where it hits each for itself

Expected defect(answer::Cause cause, Layer layer = Layer::kRuntime) {
    return {{cause}, {layer}, {Verdict::kServingDefect}};
}
Expected either(answer::Cause cause, Layer layer = Layer::kRuntime) {
    return {{cause}, {layer}, {Verdict::kServingDefect, Verdict::kPolicy}};
}

/// With [DONE] after the error, as vLLM and SGLang do.
Ending error_then_done(answer::ServerError error) {
    auto ending = error_ending(std::move(error));
    ending.terminator = true;
    return ending;
}

void add_limits(std::vector<Scenario>& all) {
    all.push_back(
        {"generation_time_limit: constant generation time",
         {{kGenerationTimeLimit}, {Layer::kRuntime}, {Verdict::kPolicy, Verdict::kServingDefect}},
         {2, 4, 8},
         [](VirtualRun& run, int from, base::Random&) {
             auto& script = run.deployed.script;
             script.lengths = {150, 200, 0.05};
             script.timing.itl_growth = 0.6;
             // Just enough for 210 tokens with half as many users.
             const double step = base::to_ms(script.timing.itl) * script.timing.growth(from / 2);
             plant(run.deployed, generation_time(base::from_ms(step * 210)));
         }});
    all.push_back(
        {"admission_rejected: 503 at once",
         either(kAdmissionRejected),
         {2, 4, 8},
         [](VirtualRun& run, int from, base::Random&) {
             run.deployed.script.plays = Plays::kVllm;
             plant(run.deployed,
                   full_house(from - 1,
                              error_ending(server_says(
                                  503, "ServiceUnavailable",
                                  "The server is overloaded: the waiting queue is full."))));
         }});
    all.push_back({"admission_rejected: HTTP 200 and an error in the stream",
                   either(kAdmissionRejected),
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kSglang;
                       auto ending = error_then_done(
                           server_says(503, "ServiceUnavailable", "The request queue is full."));
                       ending.error_always_in_band = true;
                       plant(run.deployed, full_house(from - 1, ending));
                   }});
}

void add_deaths(std::vector<Scenario>& all) {
    all.push_back({"engine_death: error for all, the engine comes back",
                   defect(kEngineDeath),
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kVllm;
                       plant(run.deployed,
                             cut_all(from, error_then_done(server_says(
                                               500, "InternalServerError",
                                               "EngineCore encountered an issue. See stack trace "
                                               "(above) for the root cause."))));
                   }});
    all.push_back({"engine_death: every stream breaks, then refused for a moment",
                   defect(kEngineDeath),
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       plant(run.deployed,
                             cut_all(from, silent_ending(BodyEnd::kFin), milliseconds(1)));
                   }});
    // Levels are climbed and then descended: after a death at the highest one the lower ones are
    // refused too.
    all.push_back({"engine_death: every stream breaks, then refused for good",
                   defect(kEngineDeath),
                   {2, 4},
                   [](VirtualRun& run, int from, base::Random&) {
                       plant(run.deployed,
                             cut_all(from, silent_ending(BodyEnd::kReset), std::chrono::hours(48)));
                   }});
    all.push_back(
        {"engine_death: Ollama's runner is gone",
         defect(kEngineDeath),
         {2, 4, 8},
         [](VirtualRun& run, int from, base::Random&) {
             run.api = answer::Api::kOllama;
             run.deployed.script.plays = Plays::kOllama;
             plant(
                 run.deployed,
                 cut_all(from,
                         error_ending(server_says(
                             500, "",
                             "an error was encountered while running the model: unexpected EOF"))));
         }});
    all.push_back({"model_unloaded: the server says so",
                   defect(kModelUnloaded),
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kTabby;
                       plant(run.deployed,
                             cut_all(from, error_ending(server_says(500, "", "Model unloaded."))));
                   }});
    all.push_back({"server_error: an error of no known class",
                   defect(kServerError),
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       plant(run.deployed,
                             cut_some(from, kMost,
                                      error_ending(server_says(500, "server_error",
                                                               "Unexpected failure in module 7"))));
                   }});
}

void add_aborts(std::vector<Scenario>& all) {
    all.push_back({"aborted_by_server: finish reason abort",
                   defect(kAbortedByServer),
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kVllm;
                       plant(run.deployed, cut_some(from, kMost, {.reason = "abort"}));
                   }});
    all.push_back(
        {"aborted_by_server: higher priority",
         defect(kAbortedByServer),
         {2, 4, 8},
         [](VirtualRun& run, int from, base::Random&) {
             run.deployed.script.plays = Plays::kSglang;
             plant(run.deployed,
                   cut_some(from, kMost,
                            error_then_done(server_says(
                                503, "", "The request is aborted by a higher priority request."))));
         }});
    all.push_back({"displaced_by_arrival: [DONE] without a finish reason",
                   defect(kDisplacedByArrival),
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random& random) {
                       run.deployed.script.plays = Plays::kLlamaCppPython;
                       run.experiment.stagger = milliseconds(150 + 50 * random.below(4));
                       plant(run.deployed, displace_on_arrival(from));
                   }});
    all.push_back({"cancelled_by_other: one client leaves, all others end",
                   defect(kCancelledByOther),
                   {4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       auto& script = run.deployed.script;
                       script.lengths = {150, 200, 0};
                       script.timing.itl_growth = 0.6;
                       // The first to run into our own deadline takes the others along.
                       const double step =
                           base::to_ms(script.timing.itl) * script.timing.growth(from / 2);
                       run.experiment.client_deadline = base::from_ms(step * 220 + 200);
                       run.experiment.stagger = milliseconds(120);
                       plant(run.deployed, cancel_with_others(silent_ending(BodyEnd::kLastChunk)));
                   }});
}

void add_output(std::vector<Scenario>& all) {
    all.push_back({"output_lost: counted but not delivered",
                   defect(kOutputLost),
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kVllm;
                       plant(run.deployed, lose_output(from, kMost));
                   }});
    all.push_back({"repetition_guard: Ollama ends without a word",
                   defect(kRepetitionGuard),
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.api = answer::Api::kOllama;
                       run.deployed.script.plays = Plays::kOllama;
                       plant(run.deployed,
                             loop_guard(from, kMost, silent_ending(BodyEnd::kLastChunk)));
                   }});
    all.push_back({"repetition_guard: vLLM's finish reason",
                   defect(kRepetitionGuard),
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kVllm;
                       plant(run.deployed, loop_guard(from, kMost,
                                                      {.reason = "repetition",
                                                       .stop_reason = "repetition_detected"}));
                   }});
    all.push_back(
        {"repetition_guard: TabbyAPI's stop with eos_reason",
         defect(kRepetitionGuard),
         {2, 4, 8},
         [](VirtualRun& run, int from, base::Random&) {
             run.deployed.script.plays = Plays::kTabby;
             plant(run.deployed,
                   loop_guard(from, kMost, {.reason = "stop", .eos_reason = "loop_detected"}));
         }});
}

}  // namespace

std::vector<Scenario> runtime_scenarios() {
    std::vector<Scenario> all;
    add_limits(all);
    add_deaths(all);
    add_aborts(all);
    add_output(all);
    return all;
}

}  // namespace fullstop::simulator
