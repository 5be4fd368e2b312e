// Reported: a natural stop with a null reason, or a reason without [DONE] and an open socket.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(HalfSaidEnds, DoneWithoutAReasonIsProbablyNatural) {
    const judge::Finding finding =
        judged(Exchange()
                   .stream()
                   .event(delta("All is said."))
                   .event(R"({"choices":[{"index":0,"delta":{},"finish_reason":null}]})")
                   .done()
                   .last_chunk()
                   .ends());
    EXPECT_EQ(finding.cause, Cause::kNaturalEnd) << word(finding);
    EXPECT_EQ(finding.confidence, Confidence::kWeak);
}

TEST(HalfSaidEnds, AReasonWithoutDoneIsComplete) {
    const judge::Finding finding = judged(Exchange()
                                              .stream()
                                              .event(delta("All is said."))
                                              .event(finish("stop"))
                                              .ends(End::kClosedByUs, 30'000));
    EXPECT_EQ(finding.cause, Cause::kNaturalEnd) << word(finding);
    EXPECT_EQ(finding.shortened, false);
}

}  // namespace
}  // namespace fullstop::regressions
