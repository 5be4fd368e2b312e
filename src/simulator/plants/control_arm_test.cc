// What does the control arm add? Whole runs in which load, a gateway or neither loses answers.
#include <gmock/gmock.h>

#include "judge/verdict.h"
#include "simulator/plants/plants.h"
#include "simulator/plants/scenario.h"
#include "simulator/plants/test_prompts.h"

namespace fullstop::simulator {
namespace {

using judge::LoadBrings;
using judge::Verdict;
using testing::HasSubstr;

Ending failing() { return error_ending(server_says(500, "error", "the batch could not be run")); }

int admitted_at(const answer::Run& run, int users) {
    for (const auto& step : run.experiment.order)
        if (step.arm == "control" && step.concurrency == users) return step.admitted;
    return -1;
}

TEST(ControlArm, WithNoMoreInFlightThanWentWellWhatLoadDoesDoesNotHappen) {
    auto run = honest_run(eight_prompts(), 71);
    plant(run.deployed, cut_some(4, 0.8, failing()));
    const auto played = run_probe(std::move(run));
    EXPECT_EQ(admitted_at(played.run, 8), 2);
    const auto verdict = judge::judge(played.run).verdict;
    EXPECT_EQ(verdict.value, Verdict::kServingDefect) << verdict.headline;
    EXPECT_EQ(verdict.from_concurrency, 4);
    EXPECT_THAT(verdict.headline,
                HasSubstr("With at most 2 requests in flight it does not happen"));
}

TEST(ControlArm, WhatHasNothingToDoWithLoadHappensAllTheSame) {
    auto run = honest_run(eight_prompts(), 72);
    plant(run.deployed, cut_some(1, 0.7, failing()));
    const auto played = run_probe(std::move(run));
    EXPECT_EQ(admitted_at(played.run, 8), 1);
    const auto verdict = judge::judge(played.run).verdict;
    EXPECT_EQ(verdict.from_concurrency, 1) << verdict.headline;
    EXPECT_NE(verdict.load.value, LoadBrings::kProven) << verdict.load.why;
    EXPECT_THAT(verdict.headline, HasSubstr("it happens all the same"));
}

TEST(ControlArm, AServerThatLosesNothingMeetsAllUsersAgain) {
    const auto played = run_probe(honest_run(eight_prompts(), 73));
    EXPECT_EQ(admitted_at(played.run, 8), 0);
}

TEST(ControlArm, LossesThatStayPastTheGatewayAreTheServersAndFewOnesDecideNothing) {
    const auto behind = [](double share_there) {
        auto run = honest_run(eight_prompts(), 74);
        run.control.emplace();
        run.control->script = run.deployed.script;
        plant(run.deployed, cut_some(8, 0.5, failing()));
        plant(*run.control, cut_some(8, share_there, failing()));
        return judge::judge(run_probe(std::move(run)).run).verdict.headline;
    };
    EXPECT_THAT(behind(0.6), HasSubstr("It stays without the gateway"));
    EXPECT_THAT(behind(0), HasSubstr("It disappears without the gateway"));
    EXPECT_THAT(behind(0.15), HasSubstr("The control arm does not decide"));
}

}  // namespace
}  // namespace fullstop::simulator
