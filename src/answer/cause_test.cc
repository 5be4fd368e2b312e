#include "answer/cause.h"

#include <gtest/gtest.h>

#include <set>

#include "answer/record.h"

namespace fullstop::answer {
namespace {

TEST(Causes, EveryWordIsUniqueAndFoundAgain) {
    std::set<std::string_view> words;
    for (const CauseEntry& cause : all_causes()) {
        EXPECT_TRUE(words.insert(cause.name).second) << cause.name;
        EXPECT_EQ(parse_cause(cause.name), cause.cause);
        EXPECT_EQ(&entry(cause.cause), &cause);
        EXPECT_EQ(parse_layer(to_string(cause.layer)), cause.layer);
    }
    EXPECT_EQ(words.size(), 36u);
    EXPECT_FALSE(parse_cause("eos"));
}

TEST(Record, SaysNothingOfMomentsThatNeverCame) {
    Record record;
    EXPECT_FALSE(record.ttft());
    EXPECT_FALSE(record.elapsed());
    EXPECT_FALSE(record.length_tokens());
    record.timeline.sent = base::from_ms(10);
    record.timeline.ended = base::from_ms(250);
    EXPECT_EQ(record.elapsed(), base::from_ms(240));
    EXPECT_EQ(record.last_silence(), base::from_ms(240))
        << "no token ever came: silence since sending";
    record.timeline.last_token = base::from_ms(200);
    EXPECT_EQ(record.last_silence(), base::from_ms(50));
}

TEST(Record, PrefersReportedTokensOverCountedOnes) {
    Record record;
    record.counted_tokens = Fact<base::Tokens>::measured({18}, "text events");
    EXPECT_EQ(record.length_tokens(), 18);
    record.output_tokens = Fact<base::Tokens>::reported({20}, "usage.completion_tokens");
    EXPECT_EQ(record.length_tokens(), 20);
}

}  // namespace
}  // namespace fullstop::answer
