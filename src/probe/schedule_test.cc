// What the schedule promises: every pair at every level and twice alone, the same seeds everywhere,
// one order per seed, no drift that favours a level, and shrinking that is even and said.
#include "probe/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>

#include "probe/pace.h"

namespace fullstop::probe {
namespace {

using answer::Experiment;
using Pair = std::tuple<std::string, std::int64_t, int>;

Experiment experiment_of(std::size_t prompts, int repeat, std::vector<int> levels = {1, 2, 4, 8}) {
    Experiment experiment;
    experiment.repeat = repeat;
    experiment.levels = std::move(levels);
    for (std::size_t i = 0; i < prompts; ++i) {
        answer::Prompt prompt;
        prompt.id = "p" + std::to_string(i);
        prompt.messages = {{"user", "question " + std::to_string(i)}};
        experiment.prompts.push_back(prompt);
    }
    return experiment;
}

/// (arm, level, phase) -> every (prompt, seed, repeat) of it, in order.
std::map<std::tuple<std::string, int, std::string>, std::vector<Pair>> pairs_of(
    const Experiment& experiment) {
    std::map<std::tuple<std::string, int, std::string>, std::vector<Pair>> pairs;
    for (std::size_t step = 0; step < experiment.order.size(); ++step)
        for (const auto& request : requests_of(experiment, step, answer::Api::kOpenAiChat, "m"))
            pairs[{request.arm, request.concurrency, request.phase}].emplace_back(
                request.prompt_id, request.seed, request.repeat);
    return pairs;
}

std::vector<std::string> order_of(const Experiment& experiment) {
    std::vector<std::string> out;
    for (const auto& step : experiment.order)
        out.push_back(step.arm.substr(0, 1) + std::to_string(step.concurrency));
    return out;
}

TEST(Schedule, DefaultGoesUpAndDownWithTheControlAtTheEndsOnce) {
    Experiment experiment = experiment_of(8, 2);
    plan(experiment, true, false);
    EXPECT_THAT(order_of(experiment),
                testing::ElementsAre("d1", "c1", "d2", "d4", "d8", "c8", "d4", "d2", "d1"));
    EXPECT_EQ(experiment.order.front().phase, "baseline_before");
    EXPECT_EQ(experiment.order.back().phase, "baseline_after");
}

TEST(Schedule, SeparateControlRunsTheFullPlanMirrored) {
    Experiment experiment = experiment_of(8, 2);
    plan(experiment, true, true);
    EXPECT_THAT(order_of(experiment),
                testing::ElementsAre("d1", "c1", "d2", "c2", "d4", "c4", "d8", "c8", "c4", "d4",
                                     "c2", "d2", "c1", "d1"));
}

TEST(Schedule, WithoutControlThereIsOnlyTheDeployedArm) {
    Experiment experiment = experiment_of(8, 1);
    plan(experiment, false, false);
    EXPECT_THAT(order_of(experiment), testing::ElementsAre("d1", "d2", "d8", "d4", "d1"));
}

TEST(Schedule, ABaselineIsPartOfEveryRun) {
    Experiment experiment = experiment_of(4, 1, {8, 8});
    plan(experiment, false, false);
    EXPECT_THAT(experiment.levels, testing::ElementsAre(1, 8));
    EXPECT_THAT(order_of(experiment), testing::ElementsAre("d1", "d8", "d1"));
}

TEST(Schedule, EveryPairRunsAtEveryLevelAndTwiceAlone) {
    rc::check("every pair at every level, twice alone", [] {
        const auto prompts = *rc::gen::inRange<std::size_t>(1, 12);
        const auto repeat = *rc::gen::inRange(1, 5);
        const bool control = *rc::gen::arbitrary<bool>();
        Experiment experiment = experiment_of(
            prompts, repeat, *rc::gen::container<std::vector<int>>(4, rc::gen::inRange(1, 70)));
        experiment.seed = *rc::gen::inRange<std::int64_t>(-5, 1'000'000);
        plan(experiment, control, control);
        const auto pairs = pairs_of(experiment);
        std::set<Pair> expected;
        for (std::size_t p = 0; p < prompts; ++p)
            for (int r = 0; r < repeat; ++r)
                expected.emplace("p" + std::to_string(p), experiment.seed + r, r);
        std::vector<std::string> arms{"deployed"};
        if (control) arms.emplace_back("control");
        for (const auto& arm : arms) {
            for (const char* phase : {"baseline_before", "baseline_after"}) {
                const auto& alone = pairs.at({arm, 1, phase});
                RC_ASSERT(alone.size() == expected.size());
                RC_ASSERT(std::set<Pair>(alone.begin(), alone.end()) == expected);
            }
            for (const int level : experiment.levels) {
                if (level == 1) continue;
                const auto& here = pairs.at({arm, level, "level"});
                const std::set<Pair> seen(here.begin(), here.end());
                RC_ASSERT(seen.size() == here.size());  // nothing twice
                for (const Pair& pair : expected) RC_ASSERT(seen.contains(pair));
                for (const auto& [prompt, seed, number] : here)
                    RC_ASSERT(seed >= experiment.seed &&
                              seed < experiment.seed + repeat);  // fillers keep the pairs' seeds
                for (const auto& step : experiment.order)
                    if (step.arm == arm && step.concurrency == level)
                        RC_ASSERT(prompts * static_cast<std::size_t>(step.repeats) >=
                                  static_cast<std::size_t>(level));
            }
        }
    });
}

TEST(Schedule, IdsAreUniqueInARunAndFitAHeader) {
    Experiment experiment = experiment_of(3, 2, {1, 2, 16});
    experiment.prompts[0].id = "zwei Wörter";
    experiment.prompts[1].id = "evil\r\nHost: x";
    experiment.prompts[2].id = std::string(300, 'x');
    plan(experiment, true, true);
    extend(experiment, {.concurrency = 2, .repeats = 2, .with_alone = true});
    extend(experiment, {.concurrency = 3, .repeats = 2, .known_pairs = true});
    std::set<std::string> ids;
    std::size_t count = 0;
    for (std::size_t step = 0; step < experiment.order.size(); ++step)
        for (const auto& request : requests_of(experiment, step, answer::Api::kOpenAiChat, "m")) {
            ids.insert(request.id);
            ++count;
            for (const char c : request.id) EXPECT_TRUE(c > 0x20 && c < 0x7f) << request.id;
            EXPECT_LT(request.id.size(), 120u);
        }
    EXPECT_EQ(ids.size(), count);
}

TEST(Schedule, IdsNameArmLevelPromptSeedAndRepeat) {
    Experiment experiment = experiment_of(1, 1, {1, 2});
    experiment.prompts[0].id = "planets";
    plan(experiment, false, false);
    EXPECT_EQ(requests_of(experiment, 0, answer::Api::kOpenAiChat, "m")[0].id,
              "deployed-1-before-planets-s1-r0");
    EXPECT_EQ(requests_of(experiment, 1, answer::Api::kOpenAiChat, "m")[0].id,
              "deployed-2-planets-s1-r0");
}

TEST(Schedule, TheSameSeedGivesTheSameRequestsAndAnotherSeedAnotherOrder) {
    Experiment experiment = experiment_of(8, 2);
    plan(experiment, true, false);
    const auto first = requests_of(experiment, 4, answer::Api::kOpenAiChat, "m");
    EXPECT_EQ(first, requests_of(experiment, 4, answer::Api::kOpenAiChat, "m"));
    experiment.seed = 2;
    const auto other = requests_of(experiment, 4, answer::Api::kOpenAiChat, "m");
    const auto prompts = [](const auto& requests) {
        std::vector<std::string> out;
        for (const auto& request : requests) out.push_back(request.prompt_id);
        return out;
    };
    EXPECT_NE(prompts(first), prompts(other));
}

TEST(Schedule, PromptsMeetOtherNeighboursAtOtherLevelsAndTheSameInBothArms) {
    Experiment experiment = experiment_of(8, 1, {1, 4, 8});
    plan(experiment, true, true);
    std::map<std::string, std::vector<std::string>> prompts;
    for (std::size_t step = 0; step < experiment.order.size(); ++step)
        for (const auto& request : requests_of(experiment, step, answer::Api::kOpenAiChat, "m"))
            prompts[request.arm + std::to_string(request.concurrency)].push_back(request.prompt_id);
    EXPECT_EQ(prompts["deployed8"], prompts["control8"]);
    EXPECT_NE(prompts["deployed8"], prompts["deployed4"]);
}

TEST(Schedule, APromptsOwnLimitWinsOverTheRuns) {
    Experiment experiment = experiment_of(2, 1);
    experiment.prompts[1].max_tokens = base::Tokens{64};
    plan(experiment, false, false);
    for (const auto& request : requests_of(experiment, 0, answer::Api::kOllama, "m")) {
        EXPECT_EQ(request.max_tokens->count, request.prompt_id == "p1" ? 64 : 512);
        EXPECT_EQ(request.api, answer::Api::kOllama);
        EXPECT_EQ(request.temperature, 0.7);
    }
}

TEST(Schedule, ABatchBringsNewPairsAndTheSameAloneOrKnownPairsAtANewLevel) {
    Experiment experiment = experiment_of(8, 2);
    plan(experiment, true, false);
    const std::size_t before = experiment.order.size();
    EXPECT_EQ(extend(experiment, {.concurrency = 8, .repeats = 2, .with_alone = true}), 2u);
    EXPECT_EQ(extend(experiment, {.concurrency = 3, .repeats = 2, .known_pairs = true}), 1u);
    std::map<int, std::set<std::int64_t>> seeds;
    for (std::size_t step = before; step < experiment.order.size(); ++step)
        for (const auto& request : requests_of(experiment, step, answer::Api::kOpenAiChat, "m")) {
            EXPECT_EQ(request.arm, "deployed");
            seeds[request.concurrency].insert(request.seed);
        }
    EXPECT_THAT(seeds[8], testing::ElementsAre(3, 4));
    EXPECT_EQ(seeds[1], seeds[8]);
    EXPECT_THAT(seeds[3], testing::ElementsAre(1, 2));
}

TEST(Schedule, LinearDriftFavoursNoLevelThatIsVisitedTwice) {
    Experiment experiment = experiment_of(16, 2);
    plan(experiment, false, false);
    std::map<int, std::pair<double, double>> positions;  // level -> sum, count
    for (std::size_t i = 0; i < experiment.order.size(); ++i) {
        positions[experiment.order[i].concurrency].first += static_cast<double>(i);
        positions[experiment.order[i].concurrency].second += 1;
    }
    for (const auto& [level, sum] : positions)
        EXPECT_DOUBLE_EQ(sum.first / sum.second, positions[1].first / positions[1].second)
            << "level " << level;
}

TEST(Budget, APlanThatFitsIsLeftAlone) {
    Experiment experiment = experiment_of(8, 2);
    fit_to_budget(experiment, true, false, 120);
    EXPECT_FALSE(experiment.reduced);
    EXPECT_EQ(experiment.repeat, 2);
    EXPECT_FALSE(experiment.order.empty());
}

TEST(Budget, AnUnknownSpeedShrinksNothing) {
    Experiment experiment = experiment_of(8, 2);
    experiment.budget = std::chrono::seconds(1);
    fit_to_budget(experiment, true, false, 0);
    EXPECT_FALSE(experiment.reduced);
}

TEST(Budget, RepeatsGoFirstThenMiddleLevelsThenPromptsAndItIsSaid) {
    Experiment experiment = experiment_of(8, 2);
    experiment.budget = std::chrono::seconds(120);
    fit_to_budget(experiment, true, false, 60);
    EXPECT_EQ(experiment.repeat, 1);
    EXPECT_EQ(experiment.levels.back(), 8) << "the highest level stays";
    ASSERT_TRUE(experiment.reduced);
    EXPECT_THAT(*experiment.reduced, testing::HasSubstr("8 prompts x 2 seeds at 1, 2, 4, 8"));
    EXPECT_THAT(*experiment.reduced, testing::HasSubstr("120 s"));

    Experiment slow = experiment_of(8, 2);
    slow.budget = std::chrono::seconds(60);
    fit_to_budget(slow, true, false, 2);
    EXPECT_THAT(slow.levels, testing::ElementsAre(1, 8));
    EXPECT_EQ(slow.prompts.size(), 4u);
    EXPECT_THAT(*slow.reduced, testing::HasSubstr("the budget may end it early"));
}

TEST(Budget, EveryShrunkPlanStillRunsEveryPairAtEveryLevel) {
    for (const double speed : {300.0, 60.0, 30.0, 15.0, 5.0, 1.0}) {
        Experiment experiment = experiment_of(8, 3);
        experiment.budget = std::chrono::seconds(150);
        fit_to_budget(experiment, true, false, speed);
        const auto pairs = pairs_of(experiment);
        const std::size_t alone = pairs.at({"deployed", 1, "baseline_before"}).size();
        EXPECT_EQ(alone, experiment.prompts.size() * static_cast<std::size_t>(experiment.repeat));
        for (const int level : experiment.levels) {
            if (level > 1) {
                EXPECT_EQ(
                    pairs.at({"deployed", level, "level"}).size(),
                    std::max<std::size_t>(alone, 8 / experiment.prompts.size() *
                                                     experiment.prompts.size() * (level == 8)))
                    << level;
            }
        }
    }
}

TEST(Describe, NamesEveryStepWithArmLevelAndAnswers) {
    Experiment experiment = experiment_of(8, 2);
    plan(experiment, true, false);
    const std::string text = describe(experiment);
    EXPECT_THAT(text, testing::StartsWith("96 answers: 8 prompts, 2 seeds each; temperature 0.7, "
                                          "at most 512 tokens, budget 600 s\n"));
    EXPECT_THAT(text,
                testing::HasSubstr("   5  deployed     8 at once    16 answers  seeds 1..2\n"));
    EXPECT_THAT(text, testing::HasSubstr("alone, after the load"));
}

}  // namespace
}  // namespace fullstop::probe
