// Reported: the client closes an actively streaming answer at 300 s.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(ClientGaveUp, TheDirectionOfTheCloseMakesItTheClients) {
    Exchange exchange;
    exchange.stream().events(2999, "x", 100);
    const judge::Finding finding = judged(exchange.ends(End::kClosedByUs, 95));
    EXPECT_EQ(finding.cause, Cause::kClientDeadline) << word(finding);
    EXPECT_EQ(finding.layer, Layer::kClient);
}

}  // namespace
}  // namespace fullstop::regressions
