// Limits on output, window, prompt and thinking, as experiments.
#include <utility>

#include "simulator/plants/plants.h"
#include "simulator/plants/scenario.h"

namespace fullstop::simulator {
namespace {

using enum answer::Cause;
using answer::Layer;
using judge::Verdict;

// Lengths stand well above the planted limits, so that every answer meets them.
constexpr LengthRange kLong{120, 200, 0.1};
constexpr std::int64_t kCap = 64;
constexpr std::int64_t kWindow = 150;  ///< prompts take 20 to 70 of it

}  // namespace

std::vector<Scenario> settings_scenarios() {
    std::vector<Scenario> all;
    all.push_back({"default_token_limit: hidden cap below the requested limit",
                   {{kDefaultTokenLimit}, {Layer::kSettings}, {Verdict::kPolicy}},
                   {1},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kVllm;
                       run.deployed.script.lengths = kLong;
                       plant(run.deployed, token_cap(from, kCap, false));
                   }});
    all.push_back({"default_token_limit: limit left to the server",
                   {{kDefaultTokenLimit}, {Layer::kSettings}, {Verdict::kPolicy}},
                   {1},
                   [](VirtualRun& run, int, base::Random&) {
                       run.experiment.max_tokens.reset();
                       run.deployed.script.plays = Plays::kSglang;
                       run.deployed.script.lengths = kLong;
                       plant(run.deployed, default_limit(kCap));
                   }});
    all.push_back({"context_limit: window split between slots",
                   {{kContextLimit}, {Layer::kSettings}, {Verdict::kPolicy}},
                   {1},
                   [](VirtualRun& run, int, base::Random&) {
                       run.deployed.script.lengths = kLong;
                       run.deployed.script.window = kWindow;
                   }});
    all.push_back({"context_limit: native dialect of llama-server",
                   {{kContextLimit}, {Layer::kSettings}, {Verdict::kPolicy}},
                   {1},
                   [](VirtualRun& run, int, base::Random&) {
                       run.api = answer::Api::kLlamaServer;
                       run.deployed.script.lengths = kLong;
                       run.deployed.script.window = kWindow;
                   }});
    all.push_back({"context_limit: window shrinks under load",
                   {{kContextLimit}, {Layer::kSettings}, {Verdict::kPolicy}},
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kOllama;
                       run.deployed.script.lengths = kLong;
                       plant(run.deployed, smaller_window(from, kWindow));
                   }});
    all.push_back({"prompt_truncated: half of the prompt dropped under load",
                   {{kPromptTruncated},
                    {Layer::kSettings},
                    {Verdict::kLatencyOnly, Verdict::kUnaffected, Verdict::kSamplingVariance},
                    kPromptTruncated},
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.plays = Plays::kOllama;
                       plant(run.deployed, prompt_cut(from, 0.5));
                   }});
    all.push_back({"reasoning_budget: thinking grows under load",
                   {{kReasoningBudget},
                    {Layer::kModel, Layer::kSettings},
                    {Verdict::kPolicy, Verdict::kServingDefect}},
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.experiment.max_tokens = base::Tokens{256};
                       run.deployed.script.plays = Plays::kVllm;
                       run.deployed.script.thinking_tokens = 30;
                       plant(run.deployed, endless_thinking(from));
                   }});
    all.push_back(
        {"request_rejected: one prompt larger than the window",
         {{}, {}, {Verdict::kUnaffected, Verdict::kLatencyOnly, Verdict::kSamplingVariance}},
         {1},
         [](VirtualRun& run, int, base::Random&) {
             plant(
                 run.deployed,
                 refuse_prompt(
                     0, server_says(
                            400, "exceed_context_size_error",
                            "the request exceeds the available context size, try increasing it")));
         }});
    return all;
}

}  // namespace fullstop::simulator
