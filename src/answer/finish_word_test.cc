#include "answer/finish_word.h"

#include <gtest/gtest.h>

namespace fullstop::answer {
namespace {

TEST(FinishWord, EveryDialectsWordHasOneMeaning) {
    EXPECT_EQ(finish_kind("stop"), FinishKind::kStop);
    EXPECT_EQ(finish_kind("stopped_eos"), FinishKind::kStop) << "llama-server before 2024";
    EXPECT_EQ(finish_kind("stopped_word"), FinishKind::kStopString);
    EXPECT_EQ(finish_kind("stopped_limit"), FinishKind::kLength);
    EXPECT_EQ(finish_kind("end_turn"), FinishKind::kStop);
    EXPECT_EQ(finish_kind("tool_use"), FinishKind::kToolCalls);
    EXPECT_EQ(finish_kind("maxPredictedTokensReached"), FinishKind::kLength);
}

TEST(FinishWord, NoWordIsNoMeaningAndAnUnknownOneIsNotGuessed) {
    EXPECT_EQ(finish_kind(""), FinishKind::kNone);
    EXPECT_EQ(finish_kind("null"), FinishKind::kNone);
    EXPECT_EQ(finish_kind("STOP"), FinishKind::kOther);
    EXPECT_EQ(finish_kind("finished_early"), FinishKind::kOther);
}

TEST(FinishWord, OnlySomeWordsSayThatTheEndTokenCame) {
    EXPECT_TRUE(names_end_token("stopped_eos"));
    EXPECT_FALSE(names_end_token("stop"));
    EXPECT_FALSE(names_end_token("length"));
}

}  // namespace
}  // namespace fullstop::answer
