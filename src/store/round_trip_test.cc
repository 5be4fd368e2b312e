// The comparison that the stores' tests rest on, and the tables that are made from the lists of
// columns.
#include "store/test_round_trip.h"

#include <gmock/gmock.h>

#include "store/encoding.h"
#include "store/fields.h"
#include "store/schema.h"

namespace fullstop::store {
namespace {

TEST(RoundTrip, TheComparisonItselfSeesEveryKindOfDifference) {
    const answer::Run run = answer::RandomRun(4).run();
    ASSERT_FALSE(run.records.empty());
    answer::Run other = run;
    other.records[0].timeline.gaps.push_back(base::Duration(1));
    EXPECT_EQ(difference(run, other), "records");
    other = run;
    other.records[0].capture.bytes += "x";
    EXPECT_EQ(difference(run, other), "records");
    other = run;
    other.experiment.seed += 1;
    EXPECT_EQ(difference(run, other), "experiment");
}

TEST(RoundTrip, AStepIsKeptWithItsRepeatsAndOneThatWasStoredWithoutThemIsRead) {
    answer::Experiment experiment;
    experiment.order = {{.arm = "deployed",
                         .phase = "level",
                         .concurrency = 8,
                         .first_repeat = 2,
                         .repeats = 5,
                         .seeds = 3,
                         .admitted = 4}};
    answer::Experiment read;
    from_text(to_text(experiment), read);
    EXPECT_EQ(read.order, experiment.order);
    answer::Experiment older;
    from_text(R"({"order":[{"arm":"deployed","phase":"level","concurrency":8}]})", older);
    const answer::Experiment::Step plain{.arm = "deployed", .phase = "level", .concurrency = 8};
    EXPECT_EQ(older.order, std::vector{plain});
}

TEST(Schema, TablesAreMadeFromTheListsOfColumns) {
    const std::string sql = create_statements({.integer = "INT",
                                               .real = "FLOAT",
                                               .text = "STRING",
                                               .blob = "BYTES",
                                               .number = "COUNTER",
                                               .suffix = " STRICT"});
    EXPECT_THAT(sql,
                testing::HasSubstr("CREATE TABLE runs (\n    id STRING PRIMARY KEY NOT NULL,\n"));
    EXPECT_THAT(sql, testing::HasSubstr(
                         "    run STRING NOT NULL REFERENCES runs(id) ON DELETE CASCADE,\n"));
    EXPECT_THAT(sql, testing::HasSubstr("    reason STRING, -- raw word of the server\n"));
    EXPECT_THAT(sql, testing::HasSubstr("    seq COUNTER,\n"));
    EXPECT_THAT(sql,
                testing::HasSubstr(") STRICT;\nCREATE INDEX samples_by_run ON samples(run);\n"));
    EXPECT_EQ(tables().size(), 3U);
}

}  // namespace
}  // namespace fullstop::store
