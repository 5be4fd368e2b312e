// Reported: KoboldCpp: errors as 200, the word null, length for stop strings, an instant 503.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(KoboldcppWords, ErrorIsAFailureAndNullIsNull) {
    const judge::Finding error = judged(
        Exchange()
            .whole(200,
                   R"({"choices":[{"index":0,"finish_reason":"error","message":{"content":""}}]})")
            .ends());
    EXPECT_EQ(error.cause, Cause::kServerError) << word(error);
    const answer::Record null = Exchange()
                                    .stream()
                                    .event(delta("a.", "null"))
                                    .event(finish("stop"))
                                    .done()
                                    .last_chunk()
                                    .ends();
    EXPECT_EQ(judged(null).cause, Cause::kNaturalEnd) << word(judged(null));
}

TEST(KoboldcppWords, LengthBelowTheLimitIsNotTheLimit) {
    const judge::Finding finding = judged(
        Exchange()
            .asks(512)
            .whole(
                200,
                R"({"choices":[{"index":0,"finish_reason":"length","message":{"content":"User asks"}}],"usage":{"prompt_tokens":20,"completion_tokens":37}})")
            .ends());
    EXPECT_NE(finding.cause, Cause::kTokenLimit);
    EXPECT_NE(finding.confidence, Confidence::kProven) << word(finding);
    EXPECT_NE(finding.next.find("stop"), std::string::npos);
}

TEST(KoboldcppWords, TheInstant503IsAFullQueue) {
    const judge::Finding finding = judged(
        Exchange()
            .whole(
                503,
                R"({"detail":{"msg":"Server is busy; please try again later.","type":"service_unavailable"}})")
            .ends());
    EXPECT_EQ(finding.cause, Cause::kAdmissionRejected) << word(finding);
    EXPECT_EQ(finding.layer, Layer::kRuntime);
}

}  // namespace
}  // namespace fullstop::regressions
