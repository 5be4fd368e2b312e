// Reported: usage in a chunk of its own, on the finish chunk, or with choices absent or null.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(UsageAnywhere, TheAnswerIsCompleteWhereverTheUsageRides) {
    for (const char* tail :
         {R"({"choices":[],"usage":{"prompt_tokens":6,"completion_tokens":3}})",
          R"({"usage":{"prompt_tokens":6,"completion_tokens":3}})",
          R"({"choices":null,"usage":{"prompt_tokens":6,"completion_tokens":3}})"}) {
        const answer::Record record = Exchange()
                                          .stream()
                                          .event(delta("All done."))
                                          .event(finish("stop"))
                                          .event(tail)
                                          .done()
                                          .last_chunk()
                                          .ends();
        EXPECT_EQ(judged(record).cause, Cause::kNaturalEnd) << tail << word(judged(record));
        ASSERT_TRUE(record.output_tokens) << tail;
        EXPECT_EQ((*record.output_tokens).count, 3);
    }
}

}  // namespace
}  // namespace fullstop::regressions
