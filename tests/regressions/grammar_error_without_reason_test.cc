// Reported: a grammar error ends the stream without reason and without [DONE].
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(GrammarErrorWithoutReason, ACleanTransportAroundAMissingEndIsUnexplainedAndShortened) {
    const judge::Finding finding =
        judged(Exchange().stream().event(delta("Checking")).last_chunk().ends());
    EXPECT_EQ(finding.cause, Cause::kUnexplained) << word(finding);
    EXPECT_EQ(finding.shortened, true);
    EXPECT_NE(finding.next.find("server's own port"), std::string::npos);
}

}  // namespace
}  // namespace fullstop::regressions
