// Reported: a full queue: fast refusals during a fan-out.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(FullQueue, AFullQueueIsARefusalAndNoCut) {
    for (const int status : {503, 500}) {
        const judge::Finding finding = judged(
            Exchange()
                .whole(
                    status,
                    R"({"error":"server busy, please try again.  maximum pending requests exceeded"})",
                    "application/json", {}, 45)
                .ends());
        EXPECT_EQ(finding.cause, Cause::kAdmissionRejected) << status << word(finding);
        EXPECT_EQ(finding.confidence, Confidence::kProven);
    }
}

TEST(FullQueue, TheSameInsideA200StreamToo) {
    const judge::Finding finding = judged(
        Exchange()
            .stream()
            .event(
                R"({"error":{"object":"error","message":"The request queue is full.","type":"service_unavailable","code":503}})")
            .done()
            .last_chunk()
            .ends());
    EXPECT_EQ(finding.cause, Cause::kAdmissionRejected) << word(finding);
}

}  // namespace
}  // namespace fullstop::regressions
