// Reported: a converter forwards only the last token of each step: counted tokens did not arrive.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(ConverterDropsTokens, TokensThatWereCountedAndNotDeliveredAreLostOutput) {
    Exchange alone, lossy;
    alone.stream()
        .events(58, " rises")
        .event(finish("stop"))
        .event(usage(70, 58))
        .done()
        .last_chunk();
    lossy.stream()
        .events(29, " rises")
        .event(finish("stop"))
        .event(usage(70, 58))
        .done()
        .last_chunk();
    const judge::Finding finding = judged(lossy.ends(), alone.ends());
    EXPECT_EQ(finding.cause, Cause::kOutputLost) << word(finding);
    EXPECT_EQ(finding.layer, Layer::kRuntime);
}

}  // namespace
}  // namespace fullstop::regressions
