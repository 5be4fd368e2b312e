// Targets for first tokens under loads that come and go: how far estimates are off, and what early
// refusal buys. The numbers are printed.
#include "engine/scheduling/slo.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "simulator/capacity/reference_cost.h"
#include "simulator/capacity/serving_run.h"

namespace fullstop::simulator {
namespace {

using base::Duration;
using base::Tokens;
using engine::SloPolicy;
using namespace std::chrono_literals;

struct Outcome {
    std::vector<double> ratios;  ///< estimate over truth
    int whole = 0, refused = 0, in_time = 0, late = 0;
};

Outcome serve(SloPolicy policy, engine::AdmissionMode mode, double rate, std::uint64_t seed,
              std::int64_t requests = 200, Duration target = 3s) {
    SimulatedBackend backend({.seed = seed,
                              .streams = false,
                              .pool = Tokens{1536},
                              .window = Tokens{1024},
                              .max_sequences = 8,
                              .natural = {},
                              .noise = 0.1},
                             reference_cost(engine::KvLayout::kUnified).model);
    ServingRun run(backend,
                   {.max_queue = 10'000,
                    .admission = mode,
                    .ttft_target = target,
                    .slo_policy = policy,
                    .cost = reference_cost(engine::KvLayout::kUnified).model},
                   make_load({.pattern = ArrivalPattern::kPoisson,
                              .rate = rate,
                              .requests = requests,
                              .prompt = {Tokens{20}, Tokens{200}},
                              .natural = {Tokens{10}, Tokens{250}},
                              .max_tokens = Tokens{300}},
                             seed));
    while (run.advance()) {
    }
    EXPECT_EQ(run.ended(), run.requests());
    Outcome out;
    for (const ServedAnswer& answer : run.answers()) {
        if (answer.refused) {
            ++out.refused;
            continue;
        }
        out.whole += answer.whole() ? 1 : 0;
        if (!answer.first) continue;
        const Duration ttft = *answer.first - answer.arrived;
        (ttft <= target ? out.in_time : out.late) += 1;
        if (answer.estimate)
            out.ratios.push_back(base::to_seconds(*answer.estimate) / base::to_seconds(ttft));
    }
    std::ranges::sort(out.ratios);
    return out;
}

double at(const std::vector<double>& sorted, double quantile) {
    return sorted.at(static_cast<std::size_t>(quantile * static_cast<double>(sorted.size() - 1)));
}

TEST(Slo, EstimatesAreNearEnoughToActOn) {
    for (const auto mode : {engine::AdmissionMode::kReserve, engine::AdmissionMode::kForecast,
                            engine::AdmissionMode::kEager})
        for (const double rate : {0.3, 0.8, 1.2}) {
            const Outcome served = serve(SloPolicy::kIgnore, mode, rate, 7);
            EXPECT_EQ(served.whole, 200);
            const double p10 = at(served.ratios, 0.1), p50 = at(served.ratios, 0.5),
                         p90 = at(served.ratios, 0.9);
            fmt::print(
                "  {} {} requests/s: estimate over truth p10 {:.2f} p50 {:.2f} p90 {:.2f}; first "
                "token in time {} of 200\n",
                to_string(mode), rate, p10, p50, p90, served.in_time);
            EXPECT_GT(p50, 0.6);
            EXPECT_LT(p50, 1.6);
        }
}

TEST(Slo, EarlyRefusalKeepsThePromiseToThoseThatAreServed) {
    int in_time = 0, late = 0, refused = 0, late_without = 0, in_time_without = 0;
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        const Outcome with =
            serve(SloPolicy::kRejectEarly, engine::AdmissionMode::kForecast, 1.2, seed);
        const Outcome without =
            serve(SloPolicy::kIgnore, engine::AdmissionMode::kForecast, 1.2, seed);
        EXPECT_EQ(with.whole + with.refused, 200);
        in_time += with.in_time, late += with.late, refused += with.refused,
            late_without += without.late, in_time_without += without.in_time;
    }
    fmt::print("  reject_early: {} in time, {} late, {} refused; ignore: {} in time, {} late\n",
               in_time, late, refused, in_time_without, late_without);
    EXPECT_GT(in_time, 2 * in_time_without)
        << "more people are served in time than when nobody is refused";
    EXPECT_LT(late, (in_time + late) / 5);
}

TEST(Slo, ALightLoadMeetsNoRefusal) {
    const Outcome served = serve(SloPolicy::kRejectEarly, engine::AdmissionMode::kForecast, 0.1, 5);
    EXPECT_EQ(served.refused, 0);
    EXPECT_EQ(served.in_time, 200);
}

}  // namespace
}  // namespace fullstop::simulator
