// Reported: two finish chunks, and internal errors dressed as a short success.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(TwoFinishChunks, ASecondFinishIsADefectOfTheProtocolAndNoCut) {
    const judge::Finding finding = judged(Exchange()
                                              .stream()
                                              .event(delta("The end.", "stop"))
                                              .event(finish("stop"))
                                              .done()
                                              .last_chunk()
                                              .ends());
    EXPECT_EQ(finding.cause, Cause::kNaturalEnd) << word(finding);
    EXPECT_EQ(finding.shortened, false);
}

TEST(TwoFinishChunks, AnAbortOfOneTokenIsTheServers) {
    const judge::Finding finding = judged(
        Exchange()
            .whole(
                200,
                R"({"choices":[{"finish_reason":"abort","message":{"content":""}}],"usage":{"prompt_tokens":9000,"completion_tokens":1}})")
            .ends());
    EXPECT_EQ(finding.cause, Cause::kAbortedByServer) << word(finding);
}

TEST(TwoFinishChunks, LengthWithNoTokenIsAMaskedError) {
    const judge::Finding finding = judged(
        Exchange()
            .asks(200)
            .whole(
                200,
                R"({"choices":[{"finish_reason":"length","message":{"content":""}}],"usage":{"prompt_tokens":30,"completion_tokens":0}})")
            .ends());
    EXPECT_EQ(finding.cause, Cause::kServerError) << word(finding);
}

}  // namespace
}  // namespace fullstop::regressions
