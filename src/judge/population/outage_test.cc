// Deaths of servers belong to the concurrency under which they happened; a server that goes on
// answering has not died.
#include "judge/population/outage.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "judge/test_run.h"
#include "judge/verdict.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Record;
using answer::Transport;

Record broken(int concurrency, double sent) {
    return RecordBuilder("broken")
        .says("half of", 10)
        .unlabelled(Transport::kReset)
        .timed(sent)
        .at(concurrency)
        .build();
}

/// As a flight leaves it: it was started, and nothing else happened.
Record refusal(int concurrency, double started) {
    Record record = RecordBuilder("refused")
                        .says("", 0)
                        .unlabelled(Transport::kRefused)
                        .at(concurrency)
                        .build();
    record.status = 0;
    record.timeline.started = base::from_ms(started);
    record.timeline.ended = base::from_ms(started + 1);
    return record;
}

Record whole(double sent) {
    return RecordBuilder("whole").says("All of it.", 50).timed(sent).at(1).build();
}

Outages outages(const std::vector<Record>& records) {
    std::vector<const Record*> pointers;
    for (const Record& record : records) pointers.push_back(&record);
    return outages_of(pointers);
}

TEST(Outage, RefusalsBelongToTheConcurrencyOfTheBreakBeforeThem) {
    const std::vector<Record> records = {whole(0), broken(8, 5000), broken(8, 5010),
                                         refusal(8, 8000), refusal(2, 60000)};
    const Outages found = outages(records);
    ASSERT_EQ(found.size(), 4u);
    for (const auto& [record, outage] : found)
        EXPECT_EQ(outage.concurrency, 8) << record->request.id;
}

TEST(Outage, IsNoneWhenAnythingWasAnsweredInBetween) {
    EXPECT_TRUE(outages({broken(8, 5000), whole(9000), refusal(8, 20000)}).empty());
    EXPECT_TRUE(outages({broken(8, 5000), whole(5500), refusal(8, 6200)}).empty())
        << "a neighbour whose tokens went on after the break";
}

TEST(Outage, NeedsABreakBeforeTheRefusal) {
    EXPECT_TRUE(outages({refusal(2, 1000), broken(8, 5000)}).empty());
    EXPECT_TRUE(outages({refusal(2, 1000), refusal(8, 2000)}).empty());
}

TEST(Outage, ASecondDeathAtAnotherConcurrencyIsCountedThere) {
    const std::vector<Record> records = {broken(8, 5000), refusal(8, 8000), whole(20000),
                                         broken(4, 30000), refusal(4, 33000)};
    const Outages found = outages(records);
    EXPECT_EQ(found.at(&records[1]).concurrency, 8);
    EXPECT_EQ(found.at(&records[4]).concurrency, 4);
}

/// The first answers at `level` break, one a user; all that come later are refused.
void die_for_good(answer::Run& run, int level) {
    int broke = 0;
    for (Record& record : run.records) {
        if (broke == 0 && record.request.concurrency != level) continue;
        const answer::Request request = record.request;
        const double started = base::to_ms(*record.timeline.started);
        record = broke < level ? broken(level, started) : refusal(request.concurrency, started);
        record.request = request;
        ++broke;
    }
}

TEST(Outage, ADeadServerIsCalledDeadAtTheLevelItDiedAtHoweverManyAnswersItRefusesAfterwards) {
    PlantedRun planted({.seed = 21, .levels = {1, 4, 8, 2}});
    die_for_good(planted.run(), 4);
    const RunJudgement judgement = judge(planted.run());
    EXPECT_EQ(judgement.verdict.value, Verdict::kServingDefect) << judgement.verdict.headline;
    EXPECT_EQ(judgement.verdict.cause, Cause::kEngineDeath) << judgement.verdict.headline;
    EXPECT_EQ(judgement.verdict.from_concurrency, 4) << judgement.verdict.headline;
    for (const LevelJudgement& level : judgement.arms.front().levels) {
        if (level.concurrency == 2 || level.concurrency == 8) {
            EXPECT_EQ(level.refused, level.answers);
            EXPECT_EQ(level.verdict, Verdict::kInconclusive);
            EXPECT_THAT(level.why, testing::HasSubstr("died at 4 users"));
        }
    }
}

/// Cuts by a limit that lets `tokens(concurrency)` through.
answer::Run limited_run(std::uint64_t seed, const std::vector<int>& levels,
                        const std::function<std::int64_t(int)>& tokens) {
    PlantedRun planted(
        {.seed = seed, .levels = levels, .plant = [&](RecordBuilder& builder, base::Random&) {
             Record& record = builder.edit();
             record.prompt_tokens = answer::Fact<base::Tokens>::reported({61}, "usage");
             const std::int64_t room = tokens(record.request.concurrency);
             if ((*record.output_tokens).count <= room) return;
             builder.says(sentence(room), room).reason("length");
             builder.timed(base::to_ms(*record.timeline.sent), 100,
                           8400.0 / static_cast<double>(room - 1));
         }});
    return planted.run();
}

TEST(GenerationTime, IsNamedWhenLengthsDifferBetweenLevelsAndTheTimeDoesNot) {
    const Judgement verdict =
        judge(limited_run(31, {1, 4, 8}, [](int users) { return users == 8 ? 90 : 130; })).verdict;
    EXPECT_EQ(verdict.cause, Cause::kGenerationTimeLimit) << verdict.headline;
}

TEST(GenerationTime, StaysAnOpenRivalOfAConstantTotalAtOneConcurrency) {
    const Judgement verdict = judge(limited_run(32, {1, 8}, [](int) { return 130; })).verdict;
    EXPECT_NE(verdict.cause, Cause::kGenerationTimeLimit) << verdict.headline;
    EXPECT_NE(verdict.confidence, answer::Confidence::kProven) << verdict.headline;
}

TEST(Outage, AnErrorInTheStreamIsADeathWhereNothingIsAnsweredAfterIt) {
    const auto failed = [](double sent) {
        return RecordBuilder("failed")
            .says("half of", 10)
            .timed(sent)
            .at(4)
            .error("CUDA out of memory")
            .build();
    };
    const std::vector<Record> dead = {whole(0), failed(5000), broken(4, 5010), refusal(4, 8000)};
    const Outages found = outages(dead);
    ASSERT_EQ(found.size(), 3u);
    for (const auto& [record, outage] : found) EXPECT_EQ(outage.death, &dead[1]);
    const std::vector<Record> alive = {failed(5000), whole(6000), refusal(4, 9000)};
    EXPECT_TRUE(outages(alive).empty());
}

}  // namespace
}  // namespace fullstop::judge
