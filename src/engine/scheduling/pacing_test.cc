// A long prompt that arrives among running answers is computed in pieces that let their next tokens
// come in time.
#include "engine/scheduling/pacing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "base/random.h"
#include "engine/engine.h"
#include "engine/test_backend.h"

namespace fullstop::engine {
namespace {

using base::Instant;
using base::Tokens;
using namespace std::chrono_literals;

/// A machine whose steps take 10 ms and 1 ms for each row.
base::Duration cost_of(std::size_t rows) {
    return std::chrono::milliseconds(10 + static_cast<std::int64_t>(rows));
}

CostModel known() {
    std::vector<CostPoint> points;
    for (const std::int64_t rows : {1, 2, 4, 8, 16, 32, 63, 64, 128, 256})
        for (const std::int64_t outputs : {std::int64_t{1}, std::min<std::int64_t>(rows, 8)}) {
            PassShape pass = rows_at(Tokens{0}, rows, true);
            pass.outputs = outputs;
            points.push_back(
                {.pass = pass, .ms = base::to_ms(cost_of(static_cast<std::size_t>(rows)))});
        }
    return CostModel::fit(std::move(points)).value();
}

struct Paced {
    explicit Paced(const EngineOptions& options)
        : backend(Tokens{1024}, 8, Tokens{4096}), engine(backend, options) {}

    void ask(SequenceId id, const std::string& prompt, std::int64_t max_tokens) {
        engine.submit(now,
                      {.id = id,
                       .arrived = now,
                       .prompt = prompt,
                       .sampling = {.temperature = 0},
                       .max_tokens = Tokens{max_tokens}},
                      events);
        backend.answers[prompt] = std::string(500, 'x');
    }
    bool step() {
        if (!engine.plan(now, events)) return false;
        engine.compute();
        now += std::chrono::duration_cast<base::Duration>(cost_of(backend.rows_of_steps.back()) *
                                                          noise());
        engine.commit(now, events);
        return true;
    }
    /// Seven answers run; then a prompt of 900 tokens comes. The longest gap of the seven from
    /// there until it is computed.
    base::Duration longest_gap() {
        for (SequenceId id = 1; id <= 7; ++id) ask(id, std::string(id, 'p') + "\n", 400);
        for (int i = 0; i < 60; ++i) step();
        events.clear();
        ask(8, std::string(899, 'q') + "\n", 10);
        for (bool first = false; !first && step();)
            for (const EngineEvent& event : std::exchange(events, {}))
                if (const auto* produced = std::get_if<Produced>(&event)) {
                    first = first || produced->id == 8;
                    if (produced->gap && produced->id != 8) gaps.push_back(*produced->gap);
                }
        return *std::ranges::max_element(gaps);
    }

    TestBackend backend;
    Engine engine;
    Instant now{};
    EngineEvents events;
    std::function<double()> noise = [] { return 1.0; };
    std::vector<base::Duration> gaps{};  ///< of the seven
};

TEST(Pacing, AMeasuredTableKeepsTheGapsOfRunningAnswersWithinTheTarget) {
    Paced paced({.itl_target = 40ms, .cost = known()});
    EXPECT_LE(paced.longest_gap(), 40ms);
    const std::size_t largest = *std::ranges::max_element(paced.backend.rows_of_steps);
    EXPECT_GT(largest, 7U + 15) << "and uses what the target leaves";
}

TEST(Pacing, WithoutATargetOrWithoutATableAFixedNumberOfRowsIsUsed) {
    EXPECT_EQ(Paced({}).longest_gap(), cost_of(7 + 64));
    EXPECT_EQ(Paced({.itl_target = 40ms}).longest_gap(), cost_of(7 + 64));
}

TEST(Pacing, OnAMachineWhoseStepsVaryNearlyAllGapsAreWithinTheTarget) {
    base::Random random(1);
    std::vector<base::Duration> gaps;
    for (int load = 0; load < 20; ++load) {
        Paced paced({.itl_target = 60ms, .cost = known()});
        paced.noise = [&] { return std::exp(0.15 * random.normal()); };
        paced.longest_gap();
        gaps.insert(gaps.end(), paced.gaps.begin(), paced.gaps.end());
    }
    std::ranges::sort(gaps);
    EXPECT_LE(gaps[gaps.size() * 99 / 100], 60ms);
    EXPECT_GT(gaps[gaps.size() / 2], 35ms) << "and the target is made use of";
}

TEST(Pacing, ATargetThatCannotBeMetStillLetsThePromptAdvance) {
    Paced paced({.itl_target = 1ms, .cost = known()});
    EXPECT_EQ(paced.longest_gap(), cost_of(7 + 4));
}

TEST(Pacing, AnswersSayWhetherTheTargetsWereMet) {
    Paced paced({.ttft_target = 20ms, .itl_target = 12ms});
    paced.ask(1, "a\n", 20);
    while (paced.step()) {
    }
    const auto& end = std::get<Ended>(paced.events.back()).end;
    EXPECT_EQ(end.numbers.ttft_met, true);
    EXPECT_EQ(end.numbers.itl_met, true);
    paced.ask(2, std::string(300, 'b') + "\n", 20);
    while (paced.step()) {
    }
    EXPECT_EQ(std::get<Ended>(paced.events.back()).end.numbers.ttft_met, false);
}

}  // namespace
}  // namespace fullstop::engine
