// Reported: a finish reason on the last content chunk, whose text begins with a colon.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(FinishOnTheLastChunk, TheAnswerIsWholeAndTheClientIsWhereToLook) {
    const judge::Finding finding = judged(Exchange()
                                              .stream()
                                              .event(delta("Result"))
                                              .event(delta(": all green.", "stop"))
                                              .event(usage(40, 9))
                                              .done()
                                              .last_chunk()
                                              .ends());
    EXPECT_EQ(finding.cause, Cause::kNaturalEnd) << word(finding);
    EXPECT_EQ(finding.shortened, false);
    bool client = false;
    for (const judge::Alternative& other : finding.alternatives)
        client = client || other.cause == Cause::kClientMisread;
    EXPECT_TRUE(client);
}

}  // namespace
}  // namespace fullstop::regressions
