// The engine on a virtual clock: whatever the pool, the mode and the order, every answer ends
// whole, nothing is lost or doubled, steps are bounded, and a seed gives the same bytes. The
// backend itself stops the program at a token that is lost, doubled or out of place.
// FULLSTOP_SIMULATED_REQUESTS=10000 makes the long tests longer.
#include "simulator/capacity/serving_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

namespace fullstop::simulator {
namespace {

using base::Tokens;
using engine::AdmissionMode;
using namespace std::chrono_literals;

constexpr std::array kModes = {AdmissionMode::kReserve, AdmissionMode::kForecast,
                               AdmissionMode::kEager};
constexpr Tokens kWindow{256};
/// More than were ever seen; a doubling of headroom at each pause ends them.
constexpr int kMostPauses = 20;

/// 10 ms a pass, 1 ms a row, 1 µs a row and token of KV.
engine::CostModel planted_cost() {
    std::vector<engine::CostPoint> points;
    for (const std::int64_t rows : {1, 2, 4, 8, 32, 63, 64, 128, 256})
        for (const std::int64_t depth : {0, 100, 200}) {
            const auto pass = engine::rows_at(Tokens{depth}, rows, true);
            points.push_back({pass, 10 + static_cast<double>(rows) + 1e-3 * pass.row_kv});
        }
    return *engine::CostModel::fit(points);
}

struct Setting {
    AdmissionMode mode = AdmissionMode::kReserve;
    Tokens pool{4096};
    std::int64_t sequences = 8;
    double noise = 0;
    std::uint64_t seed = 1;
    Tokens host_memory{10'000};
    std::int64_t restores_that_fail = 0;
    std::optional<base::Duration> itl_target{};
};

struct Simulated {
    explicit Simulated(const Setting& setting, ServingLoad load, ServingRun::Watch watch = {})
        : backend({.seed = setting.seed,
                   .streams = false,
                   .pool = setting.pool,
                   .window = std::min(kWindow, setting.pool),
                   .max_sequences = setting.sequences,
                   .swap = engine::SwapCost({{Tokens{100}, 2, 1}, {Tokens{1100}, 12, 6}}),
                   .restores_that_fail = setting.restores_that_fail,
                   .natural = {},
                   .noise = setting.noise},
                  planted_cost()),
          run(backend,
              {.max_queue = 1'000'000,
               .admission = setting.mode,
               .host_memory = SimulatedBackend::kBytesPerToken * setting.host_memory.count,
               .itl_target = setting.itl_target},
              std::move(load), std::move(watch)) {}

    Simulated& finish() {
        while (run.advance()) {
        }
        EXPECT_FALSE(run.stuck());
        EXPECT_EQ(run.ended(), run.requests());
        EXPECT_EQ(backend.cells().count, 0);
        EXPECT_EQ(backend.sequences(), 0U);
        EXPECT_EQ(run.pool().free(), run.pool().total());
        return *this;
    }

    SimulatedBackend backend;
    ServingRun run;
};

ServingLoad mixed_load(std::int64_t requests, std::int64_t users, std::uint64_t seed) {
    return make_load({.pattern = ArrivalPattern::kUsers,
                      .users = users,
                      .requests = requests,
                      .prompt = {Tokens{1}, Tokens{100}},
                      .natural = {Tokens{0}, Tokens{200}},
                      .max_tokens = Tokens{156}},
                     seed);
}

std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 1469598103934665603U;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return hash;
}

/// What the answer to request `i` is, whoever else is served.
std::uint64_t expected_hash(const SimulatedBackend& backend, const ServingLoad& load,
                            std::size_t i) {
    const std::string whole =
        backend.answer_to(prompt_text(i, load.requests[i].prompt, load.requests[i].shared));
    const auto limit = static_cast<std::size_t>(
        load.requests[i].max_tokens.value_or(kWindow - load.requests[i].prompt).count);
    return hash_of(std::string_view(whole).substr(0, limit));
}

TEST(ServingRun, OneAnswerTakesWhatItsStepsTake) {
    ServingLoad load;
    load.requests = {{.at = 5s,
                      .prompt = Tokens{100},
                      .natural = Tokens{3},
                      .max_tokens = {},
                      .patience = {},
                      .client = {}}};
    Simulated simulated({}, load);
    simulated.finish();
    const ServedAnswer& answer = simulated.run.answers()[0];
    EXPECT_EQ(answer.cause, answer::Cause::kNaturalEnd);
    EXPECT_EQ(answer.tokens.count, 3);
    EXPECT_EQ(answer.arrived, 5s);
    EXPECT_NEAR(base::to_ms(*answer.first - answer.arrived), 10 + 100 + 5.05, 0.1)
        << "the prompt in one step";
    EXPECT_NEAR(base::to_ms(answer.longest_gap), 11.1, 0.1);
    EXPECT_NEAR(base::to_ms(answer.end - *answer.first), 3 * 11.1, 0.3)
        << "two more tokens and the end token";
    EXPECT_EQ(simulated.run.rows(), 103);
}

TEST(ServingRun, ClosedLoopUsersAskAgainWhenTheirAnswerEnded) {
    Simulated simulated({}, mixed_load(30, 3, 4));
    std::int64_t most = 0;
    while (simulated.run.advance())
        most =
            std::max(most, simulated.run.occupancy().running + simulated.run.occupancy().waiting);
    EXPECT_EQ(most, 3);
    for (const ServedAnswer& answer : simulated.run.answers()) EXPECT_TRUE(answer.whole());
}

TEST(ServingRun, TheSameSeedGivesTheSameRunAndAnotherOneDoesNot) {
    const auto trace = [](std::uint64_t seed) {
        std::string text;
        Simulated simulated(
            {.mode = AdmissionMode::kEager, .pool = kWindow * 2, .noise = 0.2, .seed = seed},
            mixed_load(60, 6, 1), {.changed = {}, .stepped = [&](const ServedStep& step) {
                                       text += fmt::format("{} {}\n", step.at.count(), step.rows);
                                   }});
        simulated.finish();
        return text;
    };
    EXPECT_EQ(trace(7), trace(7));
    EXPECT_NE(trace(7), trace(8));
}

/// serving.md 4.9: pools of exactly one largest answer, a little more and a quarter more; in every
/// mode the same texts.
void answers_are_the_same_everywhere(std::int64_t requests, std::uint64_t seed) {
    const ServingLoad load = mixed_load(requests, 8, seed);
    for (const AdmissionMode mode : kModes)
        for (const double size : {1.0, 1.03, 1.25, 3.0}) {
            const Tokens pool = engine::kBlockTokens * std::llround(std::ceil(size * 256 / 16));
            const std::string repeat = fmt::format(
                "{} with {} tokens; repeat with FULLSTOP_SIMULATED_SEED={} "
                "FULLSTOP_SIMULATED_REQUESTS={} simulator_tests --gtest_filter='ServingRun.*'",
                engine::to_string(mode), pool.count, seed, requests);
            SCOPED_TRACE(repeat);
            Simulated simulated({.mode = mode, .pool = pool}, load);
            simulated.finish();
            std::int64_t pauses = 0, tokens = 0;
            int most = 0;
            for (std::size_t i = 0; i < load.requests.size(); ++i) {
                const ServedAnswer& answer = simulated.run.answers()[i];
                ASSERT_TRUE(answer.whole())
                    << "request " << i << " ended by " << answer::to_string(answer.cause);
                ASSERT_EQ(answer.text_hash, expected_hash(simulated.backend, load, i))
                    << "request " << i;
                ASSERT_LE(answer.pauses(), mode == AdmissionMode::kReserve ? 0 : kMostPauses);
                pauses += answer.pauses();
                most = std::max(most, answer.pauses());
                tokens += answer.tokens.count;
            }
            fmt::print(
                "{} with {} tokens: {} answers, {} tokens in {} steps, {} pauses, at most {} of "
                "one\n",
                engine::to_string(mode), pool.count, requests, tokens, simulated.backend.steps(),
                pauses, most);
        }
}

std::int64_t environment(const char* name, std::int64_t otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : std::atoll(value);
}

TEST(ServingRun, EveryAnswerEndsWholeAndTheSameInEveryPoolAndMode) {
    answers_are_the_same_everywhere(
        environment("FULLSTOP_SIMULATED_REQUESTS", 1000),
        static_cast<std::uint64_t>(environment("FULLSTOP_SIMULATED_SEED", 1)));
}

RC_GTEST_PROP(ServingRun, WhateverComesEveryAnswerEndsWhole, ()) {
    Setting setting{.mode = *rc::gen::elementOf(kModes),
                    .pool = engine::kBlockTokens * *rc::gen::inRange(16, 40),
                    .sequences = *rc::gen::inRange(1, 12),
                    .noise = *rc::gen::elementOf(std::array{0.0, 0.5}),
                    .seed = *rc::gen::arbitrary<std::uint64_t>(),
                    .host_memory = Tokens{*rc::gen::elementOf(std::array{0, 100, 10'000})},
                    .restores_that_fail = *rc::gen::elementOf(std::array{0, 1, 3}),
                    .itl_target = *rc::gen::elementOf(
                        std::array<std::optional<base::Duration>, 2>{std::nullopt, 50ms})};
    LoadShape shape{.pattern = *rc::gen::elementOf(std::array{
                        ArrivalPattern::kUsers, ArrivalPattern::kPoisson, ArrivalPattern::kBurst}),
                    .users = *rc::gen::inRange(1, 20),
                    .rate = *rc::gen::elementOf(std::array{0.1, 2.0, 100.0}),
                    .requests = *rc::gen::inRange(1, 60),
                    .prompt = {Tokens{1}, Tokens{*rc::gen::inRange(1, 200)}},
                    .natural = {Tokens{0}, Tokens{300}},
                    .max_tokens = Tokens{*rc::gen::inRange(1, 56)}};
    ServingLoad load = make_load(shape, setting.seed);
    base::Random random(setting.seed);
    for (PlannedRequest& request : load.requests) {
        request.priority = static_cast<engine::Priority>(random.below(3));
        request.client = std::string(1, static_cast<char>('a' + random.below(3)));
        request.shared = Tokens{static_cast<std::int64_t>(
            random.below(static_cast<std::uint64_t>(request.prompt.count) + 1))};
    }
    Simulated simulated(setting, load);
    simulated.finish();
    for (std::size_t i = 0; i < load.requests.size(); ++i) {
        RC_ASSERT(simulated.run.answers()[i].whole());
        RC_ASSERT(simulated.run.answers()[i].text_hash ==
                  expected_hash(simulated.backend, load, i));
    }
}

TEST(ServingRun, ClientsWhoLeaveTakeTheirBlocksWithThemAndNobodyElsesText) {
    const auto seed = static_cast<std::uint64_t>(environment("FULLSTOP_SIMULATED_SEED", 1));
    for (const AdmissionMode mode : kModes) {
        SCOPED_TRACE(fmt::format("{}; repeat with FULLSTOP_SIMULATED_SEED={}",
                                 engine::to_string(mode), seed));
        ServingLoad load = mixed_load(600, 16, seed);
        base::Random random(seed);
        for (std::size_t i = 0; i < load.requests.size(); i += 2)
            load.requests[i].patience = base::from_ms(random.uniform() * 20'000);
        Simulated simulated({.mode = mode, .pool = kWindow * 3}, load);
        simulated.finish();
        int left = 0;
        for (std::size_t i = 0; i < load.requests.size(); ++i) {
            const ServedAnswer& answer = simulated.run.answers()[i];
            if (answer.cause == answer::Cause::kClientCancelled) {
                ++left;
                EXPECT_TRUE(load.requests[i].patience);
                continue;
            }
            ASSERT_TRUE(answer.whole()) << i;
            EXPECT_EQ(answer.text_hash, expected_hash(simulated.backend, load, i))
                << "request " << i;
        }
        fmt::print("{}: {} of 300 impatient clients left before their answer had ended\n",
                   engine::to_string(mode), left);
        EXPECT_GE(left, 200) << "a storm";
    }
}

TEST(ServingRun, AnswersWhoseKvDoesNotComeBackAreComputedAgainAndAreTheSame) {
    const ServingLoad load = mixed_load(100, 8, 2);
    const auto paused = [&](Tokens host_memory, std::int64_t restores_that_fail) {
        Simulated simulated({.mode = AdmissionMode::kEager,
                             .pool = kWindow,
                             .host_memory = host_memory,
                             .restores_that_fail = restores_that_fail},
                            load);
        simulated.finish();
        for (std::size_t i = 0; i < load.requests.size(); ++i)
            EXPECT_EQ(simulated.run.answers()[i].text_hash,
                      expected_hash(simulated.backend, load, i));
        return simulated.run.occupancy();
    };
    EXPECT_EQ(paused(Tokens{10'000}, 0).recomputes, 0);
    EXPECT_GT(paused(Tokens{10'000}, 0).swaps, 0);
    EXPECT_EQ(paused(Tokens{10'000}, 1).swaps, 0);
    EXPECT_GT(paused(Tokens{10'000}, 1).recomputes, 0);
    EXPECT_EQ(paused(Tokens{0}, 0).swaps, 0);
    EXPECT_GT(paused(Tokens{0}, 0).recomputes, 0);
}

TEST(ServingRun, ASharedBeginningIsComputedOnceAndChangesNoText) {
    const auto rows = [](Tokens shared) {
        LoadShape shape{.users = 4,
                        .requests = 60,
                        .prompt = {Tokens{120}, Tokens{140}},
                        .natural = {Tokens{1}, Tokens{60}},
                        .shared = shared,
                        .max_tokens = Tokens{80}};
        const ServingLoad load = make_load(shape, 1);
        Simulated simulated({}, load);
        simulated.finish();
        for (std::size_t i = 0; i < load.requests.size(); ++i)
            EXPECT_EQ(simulated.run.answers()[i].text_hash,
                      expected_hash(simulated.backend, load, i));
        return simulated.run.rows();
    };
    const std::int64_t apart = rows(Tokens{0}), together = rows(Tokens{100});
    EXPECT_LT(together, apart - 50 * 100);
}

TEST(ServingRun, AFailedStepEndsWhoWasInItWithItsReasonAndTheOthersGoOn) {
    for (const auto status : {engine::DecodeStatus::kAborted, engine::DecodeStatus::kFatal,
                              engine::DecodeStatus::kNoRoom}) {
        ServingLoad load = mixed_load(40, 12, 3);
        Simulated simulated({.mode = AdmissionMode::kEager, .pool = kWindow * 2}, load);
        simulated.backend.fail(50, status);
        simulated.finish();
        int failed = 0;
        for (std::size_t i = 0; i < load.requests.size(); ++i) {
            const ServedAnswer& answer = simulated.run.answers()[i];
            if (answer.whole()) {
                EXPECT_EQ(answer.text_hash, expected_hash(simulated.backend, load, i));
                continue;
            }
            ++failed;
            EXPECT_EQ(answer.cause,
                      status == engine::DecodeStatus::kAborted  ? answer::Cause::kAbortedByServer
                      : status == engine::DecodeStatus::kNoRoom ? answer::Cause::kKvPoolExhausted
                                                                : answer::Cause::kServerError);
        }
        EXPECT_GE(failed, 1);
        EXPECT_LE(failed, 8);
    }
}

TEST(ServingRun, PoissonArrivalsComeAtTheirRateAndABurstAtOnce) {
    const auto poisson = make_load({.pattern = ArrivalPattern::kPoisson,
                                    .rate = 5,
                                    .requests = 5000,
                                    .prompt = {},
                                    .natural = {},
                                    .max_tokens = {}},
                                   1);
    EXPECT_NEAR(base::to_seconds(poisson.requests.back().at), 1000, 60);
    const auto burst = make_load({.pattern = ArrivalPattern::kBurst,
                                  .requests = 10,
                                  .prompt = {},
                                  .natural = {},
                                  .max_tokens = {}},
                                 1);
    for (const PlannedRequest& request : burst.requests) EXPECT_EQ(request.at, 0s);
}

TEST(ServingRun, AFullQueueRefusesAndTheUserComesBackWhenItWasTold) {
    ServingLoad load = mixed_load(30, 10, 1);
    SimulatedBackend backend(
        {.pool = kWindow, .window = kWindow, .max_sequences = 1, .natural = {}}, planted_cost());
    ServingRun run(backend, {.max_queue = 2, .admission = AdmissionMode::kReserve}, load);
    while (run.advance()) {
    }
    int refused = 0;
    for (const ServedAnswer& answer : run.answers()) refused += answer.refused ? 1 : 0;
    EXPECT_GE(refused, 7);
    EXPECT_LT(refused, 30);
    EXPECT_EQ(run.ended(), 30U);
}

}  // namespace
}  // namespace fullstop::simulator
