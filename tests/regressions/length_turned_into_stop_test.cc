// Reported: a translation layer turns length into stop.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

std::string gateways_view(const std::string& text) {
    return R"({"choices":[{"index":0,"message":{"content":")" + text +
           R"("},"finish_reason":"stop"}],"usage":{"prompt_tokens":18,"completion_tokens":20}})";
}

TEST(LengthTurnedIntoStop, TheLimitReachedInMidSentenceIsTheLimitWhateverTheLabel) {
    const judge::Finding finding = judged(
        Exchange().asks(20).whole(200, gateways_view("Networks learn by adjusting light")).ends());
    EXPECT_EQ(finding.cause, Cause::kTokenLimit) << word(finding);
    EXPECT_NE(finding.confidence, Confidence::kProven) << "the count may be a coincidence";
}

TEST(LengthTurnedIntoStop, AClosedTextOfThatLengthMayBeNatural) {
    const judge::Finding finding =
        judged(Exchange().asks(20).whole(200, gateways_view("Networks learn.")).ends());
    EXPECT_EQ(finding.cause, Cause::kNaturalEnd) << word(finding);
}

TEST(LengthTurnedIntoStop, TheServersOwnLineSaysLength) {
    const auto record =
        Exchange()
            .asks(20)
            .stream("application/x-ndjson")
            .chunk(R"({"model":"m","message":{"role":"assistant","content":" light"},"done":false})"
                   "\n")
            .chunk(
                R"({"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"length","prompt_eval_count":18,"eval_count":20})"
                "\n")
            .last_chunk()
            .ends();
    EXPECT_EQ(judged(record).cause, Cause::kTokenLimit) << word(judged(record));
    EXPECT_EQ(judged(record).confidence, Confidence::kProven);
}

}  // namespace
}  // namespace fullstop::regressions
