// Reported: a client that leaves stops the answer of another.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(OtherClientLeft, AStallFromTheMomentAnotherClientLeftIsThatDeparture) {
    Exchange victim("a"), leaver("b", 500);
    victim.stream().events(140, " word");
    const double left_ms = 5 + 140 * 20;
    leaver.stream();
    const answer::Record stalled = victim.ends(End::kTimedOut, 60'000),
                         left = leaver.ends(End::kClosedByUs, left_ms - 505);
    const judge::Finding finding = judge::judge_together({stalled, left}).findings.at(0);
    EXPECT_EQ(finding.cause, Cause::kCancelledByOther) << word(finding);
    EXPECT_EQ(finding.layer, Layer::kRuntime);
}

}  // namespace
}  // namespace fullstop::regressions
