// Reported: chunks are not tokens.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(ChunksAreNoTokens, TwentyChunksOfNinetyTokensAreAWholeAnswer) {
    Exchange exchange;
    exchange.stream()
        .events(19, "four words and more")
        .event(delta(" and here it ends."))
        .event(finish("stop"))
        .event(usage(12, 90))
        .done()
        .last_chunk();
    const judge::Finding finding = judged(exchange.ends());
    EXPECT_EQ(finding.cause, Cause::kNaturalEnd) << word(finding);
    EXPECT_EQ(finding.shortened, false);
}

}  // namespace
}  // namespace fullstop::regressions
