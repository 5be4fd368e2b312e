// Reported: a gateway invents stop, usage and [DONE] after an upstream that ended without them.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

Exchange half_a_document(const wire::Headers& headers) {
    Exchange exchange;
    exchange.stream("text/event-stream", headers)
        .event(delta(R"({\"city\": \"Os)"))
        .event(finish("stop"))
        .event(usage(31, 6))
        .done()
        .last_chunk();
    return exchange;
}

TEST(GatewayInventsTheEnd, AnOpenDocumentCalledFinishedIsNeverTakenForNatural) {
    for (const wire::Headers& headers :
         {wire::Headers{}, wire::Headers{{"x-litellm-version", "1.0"}}}) {
        const judge::Finding finding = judged(half_a_document(headers).ends());
        EXPECT_EQ(finding.cause, Cause::kUnexplained) << word(finding);
        EXPECT_NE(finding.confidence, Confidence::kProven);
        EXPECT_TRUE(finding.open_ending);
        EXPECT_FALSE(finding.next.empty());
    }
}

TEST(GatewayInventsTheEnd, TheUpstreamsOwnEndIsNoNaturalOneEither) {
    const judge::Finding finding =
        judged(Exchange().stream().event(delta(R"({\"city\": \"Os)")).last_chunk().ends());
    EXPECT_EQ(finding.cause, Cause::kUnexplained) << word(finding);
    EXPECT_EQ(finding.shortened, true);
}

}  // namespace
}  // namespace fullstop::regressions
