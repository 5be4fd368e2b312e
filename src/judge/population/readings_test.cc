// A server's counter and gauges, read once a second while levels take turns: each level is told
// what happened in its own time.
#include "judge/population/readings.h"

#include <gtest/gtest.h>

#include "judge/test_run.h"
#include "judge/verdict.h"

namespace fullstop::judge {
namespace {

using std::chrono::seconds;

struct Turn {
    int concurrency, from, to;
};

/// Answers of each turn fill its time.
answer::Run run_of(const std::vector<Turn>& turns) {
    answer::Run run;
    for (const Turn& turn : turns)
        for (int user = 0; user < turn.concurrency; ++user) {
            answer::Record record;
            record.request.arm = "deployed";
            record.request.concurrency = turn.concurrency;
            record.timeline.sent = seconds(turn.from);
            record.timeline.ended = seconds(turn.to);
            run.records.push_back(record);
        }
    return run;
}

void read(answer::Run& run, int at, double preemptions, double used = 0.5) {
    answer::Sample sample;
    sample.at = seconds(at);
    sample.arm = "deployed";
    sample.preemptions = preemptions;
    sample.kv_used = used;
    sample.free_bytes = 1e9 * (1 - used);
    run.samples.push_back(sample);
}

const std::vector<Turn> kInterleaved = {
    {1, 0, 10}, {8, 12, 20}, {2, 22, 30}, {8, 32, 40}, {1, 42, 50}};

TEST(Readings, PreemptionsAreShownAtTheLevelThatHadThem) {
    answer::Run run = run_of(kInterleaved);
    for (int at = 0; at <= 52; ++at)
        read(run, at, 100 + (at >= 17 ? 3 : 0) + (at >= 35 ? 2 : 0),
             at >= 12 && at <= 20 ? 0.9 : 0.2);
    EXPECT_EQ(readings_of(run, "deployed", 8).preemptions, 5);
    EXPECT_EQ(readings_of(run, "deployed", 2).preemptions, 0);
    EXPECT_EQ(readings_of(run, "deployed", 1).preemptions, 0)
        << "its answers stand before and behind, not beside";
    EXPECT_EQ(readings_of(run, "deployed", 8).kv_used, 0.9);
    EXPECT_EQ(readings_of(run, "deployed", 1).kv_used, 0.2);
    EXPECT_NEAR(*readings_of(run, "deployed", 1).free_bytes, 0.8e9, 1);
    EXPECT_EQ(readings_of(run, "control", 8).preemptions, std::nullopt) << "no answers of that arm";
}

TEST(Readings, AnIncreaseAtTheChangeOfLevelsCountsOnceForTheHigherOne) {
    answer::Run run = run_of({{1, 0, 10}, {8, 10, 20}, {1, 20, 30}});
    for (const auto& [at, count] : {std::pair{0, 0}, {9, 0}, {11, 1}, {19, 1}, {21, 3}, {30, 3}})
        read(run, at, count);
    EXPECT_EQ(readings_of(run, "deployed", 8).preemptions, 3);
    EXPECT_EQ(readings_of(run, "deployed", 1).preemptions, 0);
}

TEST(Readings, ACounterThatBeganAnewOrWasNotReadSaysNothing) {
    answer::Run run = run_of({{1, 0, 10}, {8, 12, 20}});
    read(run, 0, 7);
    EXPECT_EQ(readings_of(run, "deployed", 1).preemptions, std::nullopt)
        << "one reading is no difference";
    read(run, 11, 7);
    read(run, 15, 2);
    read(run, 21, 3);
    EXPECT_EQ(readings_of(run, "deployed", 1).preemptions, 0);
    EXPECT_EQ(readings_of(run, "deployed", 8).preemptions, std::nullopt);
}

TEST(Readings, AJudgedRunShowsThemWhereTheyHappened) {
    PlantedRun planted({});
    answer::Run& run = planted.run();
    const auto at_eight = [&](bool last) {
        base::Duration found{};
        for (const answer::Record& record : run.records)
            if (record.request.concurrency == 8 && (found == base::Duration{} || last))
                found = *record.timeline.sent;
        return found;
    };
    const base::Duration half = (at_eight(false) + at_eight(true)) / 2;
    for (base::Duration at{}; at < *run.records.back().timeline.ended; at += seconds(1)) {
        answer::Sample sample;
        sample.at = at;
        sample.preemptions = at >= half ? 4 : 0;
        run.samples.push_back(sample);
    }
    for (const LevelJudgement& level : judge(run).arms.front().levels)
        EXPECT_EQ(level.preemptions.value, level.concurrency == 8 ? 4 : 0)
            << level.concurrency << ": " << level.preemptions.how;
}

}  // namespace
}  // namespace fullstop::judge
