// Calibration against a simulated machine whose costs are known: what is measured and fitted are
// those costs.
#include "cli/simulate/calibrate.h"

#include <gtest/gtest.h>

#include "engine/cost/measure_passes.h"
#include "engine/cost/trial_run.h"
#include "simulator/capacity/simulated_backend.h"

namespace fullstop::cli {
namespace {

using base::Tokens;

/// Ten milliseconds a pass, one a row; dear attention below 64 rows; half a millisecond an output;
/// unified passes walk all cells.
double planted_ms(const engine::PassShape& pass) {
    return 10 + static_cast<double>(pass.rows) + (pass.rows < 64 ? 10e-3 : 1e-3) * pass.row_kv +
           1e-3 * pass.row_foreign + 0.5 * static_cast<double>(pass.outputs);
}

engine::CostModel planted_cost() {
    std::vector<engine::CostPoint> points;
    for (const std::int64_t rows : {1, 2, 4, 8, 16, 32, 63, 64, 100, 128, 200, 256})
        for (const std::int64_t depth : {0, 300, 900})
            for (const std::int64_t foreign : {0, 800, 2000})
                for (const std::int64_t outputs :
                     {std::int64_t{0}, std::int64_t{1}, std::min<std::int64_t>(rows, 8)}) {
                    engine::PassShape pass =
                        engine::rows_at(Tokens{depth}, rows, true, Tokens{foreign});
                    pass.outputs = outputs;
                    points.push_back({pass, planted_ms(pass)});
                }
    return *engine::CostModel::fit(std::move(points));
}

/// Stands still but for what the backend's decodes take.
class BackendClock final : public base::Clock {
public:
    explicit BackendClock(simulator::SimulatedBackend& backend) : backend_(backend) {}
    base::Instant now() const override { return now_ += backend_.take_elapsed(); }
    base::WallTime wall() const override { return {}; }

private:
    simulator::SimulatedBackend& backend_;
    mutable base::Instant now_{};
};

engine::MeasurePlan unhurried(engine::MeasurePlan plan) {
    plan.budget = std::chrono::hours(1);
    return plan;
}

engine::CostModel calibrated(bool streams, double noise,
                             const engine::MeasurePlan& plan = engine::kThoroughly) {
    simulator::SimulatedBackend backend(
        {.streams = streams,
         .pool = Tokens{streams ? 8192 : 5120},
         .window = Tokens{streams ? 1024 : 5120},
         .max_sequences = 8,
         .swap = engine::SwapCost({{Tokens{100}, 2, 1}, {Tokens{1100}, 12, 6}}),
         .natural = {},
         .noise = noise},
        planted_cost());
    const BackendClock clock(backend);
    double share = 0;
    auto costs = engine::measure_passes(
        backend, clock, unhurried(plan), [] { return false; },
        [&](double done) {
            EXPECT_GE(done, share);
            share = done;
        });
    EXPECT_EQ(share, 1);
    EXPECT_EQ(backend.cells().count, 0) << "nothing is left behind";
    const engine::SwapCost swap(costs.swaps);
    EXPECT_NEAR(base::to_ms(swap.out(Tokens{600})), 7, 0.1);
    EXPECT_NEAR(base::to_ms(swap.in(Tokens{600})), 3.5, 0.1);
    return *engine::CostModel::fit(std::move(costs.passes));
}

double worst_miss(const engine::CostModel& model, bool streams) {
    double worst = 0;
    const auto compare = [&](const engine::PassShape& pass) {
        engine::StepShape step(false);
        step.add(pass);
        worst = std::max(worst, std::abs(base::to_ms(model.estimate(step)) / planted_ms(pass) - 1));
    };
    for (const std::int64_t rows : {5, 24, 100, 256})
        compare(engine::rows_at(Tokens{600}, rows, rows < 100));
    for (const std::int64_t decodes : {1, 3, 8})
        compare(
            {.rows = decodes,
             .outputs = decodes,
             .row_kv = static_cast<double>(decodes * 400),
             .row_foreign = streams ? 0.0 : static_cast<double>(decodes * (decodes - 1) * 400)});
    if (!streams)
        compare({.rows = 71,
                 .outputs = 7,
                 .row_kv = 7 * 300 + 64 * 32,
                 .row_foreign = 7 * 1800 + 64 * 2100});
    return worst;
}

TEST(Calibration, FindsTheCostsOfAMachineThatIsQuiet) {
    EXPECT_LT(worst_miss(calibrated(true, 0), true), 0.02);
    EXPECT_LT(worst_miss(calibrated(false, 0), false), 0.02);
}

TEST(Calibration, FindsThemOnAMachineThatIsNot) {
    EXPECT_LT(worst_miss(calibrated(true, 0.2), true), 0.2);
    EXPECT_LT(worst_miss(calibrated(false, 0.2), false), 0.2);
    EXPECT_GT(calibrated(false, 0.2).fit_noise(), 0.05) << "and says how noisy it was";
}

TEST(Calibration, ATrialSaysHowWellStepsAreKnown) {
    simulator::SimulatedBackend backend(
        {.pool = Tokens{5120}, .window = Tokens{5120}, .natural = {Tokens{20}, Tokens{80}}},
        planted_cost());
    const BackendClock clock(backend);
    const auto never = [] { return false; };
    const auto right =
        engine::trial_run(backend, clock, planted_cost(), std::chrono::hours(1), never);
    ASSERT_TRUE(right);
    EXPECT_GT(right->steps, 60);
    EXPECT_LT(right->mean_miss, 1e-3);
    std::vector<engine::CostPoint> half;
    const engine::CostModel planted = planted_cost();
    half.assign(planted.points().begin(), planted.points().end());
    for (engine::CostPoint& point : half) point.ms /= 2;
    const auto wrong = engine::trial_run(backend, clock, *engine::CostModel::fit(half),
                                         std::chrono::hours(1), never);
    ASSERT_TRUE(wrong);
    EXPECT_NEAR(wrong->mean_miss, 0.5, 0.01);
    EXPECT_NEAR(wrong->total_miss, -0.5, 0.01);
    EXPECT_EQ(backend.cells().count, 0);
    EXPECT_FALSE(engine::trial_run(backend, clock, planted_cost(), std::chrono::hours(1),
                                   [] { return true; }));
}

TEST(Calibration, EndsInTimeOnASlowMachineWithWhatItHas) {
    simulator::SimulatedBackend backend(
        {.pool = Tokens{5120}, .window = Tokens{5120}, .natural = {}}, planted_cost());
    const BackendClock clock(backend);
    for (const double budget_ms : {3000.0, 100.0}) {
        const auto before = clock.now();
        engine::MeasurePlan plan = engine::kBriefly;
        plan.budget = base::from_ms(budget_ms);
        const auto costs =
            engine::measure_passes(backend, clock, plan, [] { return false; }, [](double) {});
        EXPECT_LT(base::to_ms(clock.now() - before), budget_ms + 1000)
            << "the pass that was being computed";
        EXPECT_FALSE(costs.passes.empty());
    }
}

TEST(Calibration, ABriefMeasurementIsOfUseToo) {
    EXPECT_LT(worst_miss(calibrated(true, 0, engine::kBriefly), true), 0.1);
    EXPECT_LT(worst_miss(calibrated(false, 0, engine::kBriefly), false), 0.1);
}

}  // namespace
}  // namespace fullstop::cli
