// Reported: prefill dies after the headers: a role, silence, and a valid last chunk.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(PrefillDied, AnAnswerThatNeverBeganIsNoCleanOne) {
    const auto record =
        Exchange()
            .stream()
            .event(
                R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]})")
            .bytes(wire::last_chunk(), 22'000)
            .ends();
    const judge::Finding finding = judged(record);
    EXPECT_EQ(finding.shortened, true) << word(finding);
    EXPECT_NE(finding.cause, Cause::kNaturalEnd);
    EXPECT_NE(finding.confidence, Confidence::kProven);
    EXPECT_FALSE(finding.next.empty());
}

}  // namespace
}  // namespace fullstop::regressions
