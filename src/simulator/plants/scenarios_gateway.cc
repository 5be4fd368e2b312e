// What stands between user and server, as experiments: the deployed arm goes through it, the
// control arm does not.
#include <utility>

#include "simulator/plants/plants.h"
#include "simulator/plants/scenario.h"

namespace fullstop::simulator {
namespace {

using enum answer::Cause;
using answer::Layer;
using judge::Verdict;
using std::chrono::seconds;

constexpr LengthRange kLong{150, 200, 0.05};
constexpr double kMost = 0.8;

const Expected kIdle{{kGatewayIdleTimeout}, {Layer::kGateway}, {Verdict::kPolicy}};
const Expected kDeadline{{kGatewayDeadline}, {Layer::kGateway}, {Verdict::kPolicy}};
const Expected kBudget{{kGatewayTokenBudget}, {Layer::kGateway}, {Verdict::kPolicy}};
const Expected kRefusal{{kGatewayRejected}, {Layer::kGateway}, {Verdict::kPolicy}};

/// The server behind the gateway: the same script without the gateway's headers.
Cast& behind(VirtualRun& run) {
    run.control.emplace();
    run.control->script = run.deployed.script;
    run.control->script.headers.clear();
    return *run.control;
}

void stalls(VirtualRun& run, int from, base::Duration limit) {
    run.deployed.script.headers.emplace_back("Server", "nginx/1.22.1");
    plant(run.deployed, stall(from, kMost, limit + seconds(15), limit));
    plant(behind(run), stall(from, kMost, limit + seconds(15), {}));
}

/// Slow enough that half as many users finish just within `limit`.
void slow(VirtualRun& run, int from, base::Duration limit) {
    auto& script = run.deployed.script;
    script.lengths = kLong;
    script.timing.itl_growth = 0.6;
    script.timing.itl =
        base::from_ms(base::to_ms(limit) * 0.9 / (210 * script.timing.growth(from / 2)));
}

void add_timers(std::vector<Scenario>& all) {
    all.push_back(
        {"gateway_idle_timeout: nginx, 60 s of silence",
         kIdle,
         {2, 4, 8},
         [](VirtualRun& run, int from, base::Random&) { stalls(run, from, seconds(60)); }});
    all.push_back({"gateway_idle_timeout: a limit of its own",
                   kIdle,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random& random) {
                       stalls(run, from, seconds(7 + random.below(30)));
                   }});
    all.push_back({"gateway_deadline: Envoy's route timeout",
                   kDeadline,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       slow(run, from, seconds(15));
                       run.deployed.script.headers.emplace_back("Server", "envoy");
                       behind(run);
                       plant(run.deployed, total_time(seconds(15), silent_ending(BodyEnd::kFin)));
                   }});
    all.push_back({"gateway_deadline: a limit of its own, no control URL",
                   kDeadline,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random& random) {
                       const auto limit = seconds(20 + 7 * random.below(4));
                       slow(run, from, limit);
                       run.deployed.script.headers.emplace_back("Via", "1.1 edge");
                       plant(run.deployed, total_time(limit, silent_ending(BodyEnd::kFin)));
                   }});
}

void add_budgets(std::vector<Scenario>& all) {
    for (const bool announced : {true, false})
        all.push_back({announced ? "gateway_token_budget: announced in headers"
                                 : "gateway_token_budget: not announced",
                       kBudget,
                       {2, 4, 8},
                       [announced](VirtualRun& run, int from, base::Random&) {
                           run.deployed.script.lengths = kLong;
                           if (!announced)
                               run.deployed.script.headers.emplace_back("Via", "1.1 gateway");
                           behind(run);
                           for (const int load : {from, 2 * from})
                               plant(run.deployed, token_cap(load, 160 / load + 40, announced));
                       }});
}

void add_refusals(std::vector<Scenario>& all) {
    all.push_back({"gateway_rejected: nginx limits connections",
                   kRefusal,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.headers.emplace_back("Server", "nginx/1.22.1");
                       behind(run);
                       auto ending = error_ending(server_says(503, "", ""));
                       ending.html_error = true;
                       plant(run.deployed, full_house(from - 1, ending));
                   }});
    all.push_back({"gateway_rejected: llama-swap's concurrency limit",
                   kRefusal,
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       behind(run);
                       plant(run.deployed, full_house(from - 1, error_ending(server_says(
                                                                    429, "rate_limit",
                                                                    "concurrency limit reached"))));
                   }});
    all.push_back({"gateway_rejected: 504 page while the server queues",
                   {{kGatewayRejected, kGatewayDeadline}, {Layer::kGateway}, {Verdict::kPolicy}},
                   {4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       auto& script = run.deployed.script;
                       script.headers.emplace_back("Server", "nginx/1.22.1");
                       script.lengths = {90, 110, 0.05};
                       script.slots =
                           from /
                           4;  // half as many users wait for one answer, all of them for three
                       script.timing.itl = std::chrono::milliseconds(400);
                       script.timing.itl_growth = 0;
                       behind(run);
                       auto ending = error_ending(server_says(504, "", ""));
                       ending.html_error = true;
                       plant(run.deployed, first_byte_time(seconds(60), ending));
                   }});
}

void add_rewrites(std::vector<Scenario>& all) {
    all.push_back({"gateway_rewrite: single cuts made to look finished",
                   {{kGatewayRewrite}, {Layer::kGateway}, {Verdict::kServingDefect}},
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       run.deployed.script.headers.emplace_back("x-litellm-version", "1.108.7");
                       const auto ending = error_ending(
                           server_says(500, "server_error", "Unexpected failure in module 7"));
                       plant(behind(run), cut_some(from, 1, ending));
                       plant(run.deployed, cut_some(from, 1, ending), rewrite_ends());
                   }});
    // Both are true: the pool is the cause, and the gateway hides it.
    all.push_back({"gateway_rewrite: a full KV pool made to look finished",
                   {{kGatewayRewrite, kKvPoolExhausted},
                    {Layer::kGateway, Layer::kMemory},
                    {Verdict::kServingDefect}},
                   {2, 4, 8},
                   [](VirtualRun& run, int from, base::Random&) {
                       auto& script = run.deployed.script;
                       script.lengths = {120, 180, 0.1};
                       script.pool = 115 * from;
                       script.headers.emplace_back("x-litellm-version", "1.108.7");
                       const auto ending = error_ending(
                           server_says(500, "server_error", "Context size has been exceeded."));
                       plant(behind(run), kv_pool(*script.pool, ending));
                       plant(run.deployed, kv_pool(*script.pool, ending), rewrite_ends());
                   }});
}

}  // namespace

std::vector<Scenario> gateway_scenarios() {
    std::vector<Scenario> all;
    add_timers(all);
    add_budgets(all);
    add_refusals(all);
    add_rewrites(all);
    return all;
}

}  // namespace fullstop::simulator
