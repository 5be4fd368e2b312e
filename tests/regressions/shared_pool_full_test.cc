// Reported: one full shared KV pool ends every parallel answer; two generations of llama-server put
// the error differently.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(SharedPoolFull, EveryParallelAnswerNamesTheSharedPool) {
    std::vector<answer::Record> records;
    for (int i = 0; i < 4; ++i)
        records.push_back(
            Exchange("a" + std::to_string(i))
                .asks(400, "p" + std::to_string(i))
                .stream()
                .events(60, " seven")
                .event(
                    R"({"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}})")
                .last_chunk()
                .ends());
    const judge::TogetherJudgement together = judge::judge_together(records);
    for (const judge::Finding& finding : together.findings) {
        EXPECT_EQ(finding.cause, Cause::kKvPoolExhausted) << word(finding);
        EXPECT_EQ(finding.layer, Layer::kMemory);
        EXPECT_EQ(finding.confidence, Confidence::kProven);
        EXPECT_EQ(finding.shortened, true);
    }
    ASSERT_FALSE(together.together.empty());
    EXPECT_EQ(together.together.front().records.size(), 4u);
}

TEST(SharedPoolFull, TheOldErrorFieldBeforeDoneIsTheSame) {
    const auto record = Exchange()
                            .stream()
                            .events(9, " seven")
                            .chunk(
                                "error: {\"code\":500,\"message\":\"Context size has been "
                                "exceeded.\",\"type\":\"server_error\"}\n\n")
                            .done()
                            .last_chunk()
                            .ends();
    EXPECT_EQ(judged(record).cause, Cause::kKvPoolExhausted) << word(judged(record));
}

TEST(SharedPoolFull, WithoutStreamingTheTextIsLostAndTheCauseIsNot) {
    const auto record =
        Exchange()
            .whole(
                500,
                R"({"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}})")
            .ends();
    EXPECT_EQ(judged(record).cause, Cause::kKvPoolExhausted) << word(judged(record));
}

}  // namespace
}  // namespace fullstop::regressions
