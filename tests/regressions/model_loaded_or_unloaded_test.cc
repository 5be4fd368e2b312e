// Reported: done_reason load or unload: nothing was asked.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(ModelLoadedOrUnloaded, LoadingIsNoAnswerAndNoTruncation) {
    for (
        const char* body :
        {R"({"model":"m","message":{"role":"assistant","content":""},"done_reason":"load","done":true})",
         R"({"model":"m","response":"","done":true,"done_reason":"unload"})"}) {
        const judge::Finding finding = judged(Exchange().whole(200, body).ends());
        EXPECT_EQ(finding.cause, Cause::kRequestRejected) << body << word(finding);
        EXPECT_NE(finding.shortened, true);
    }
}

}  // namespace
}  // namespace fullstop::regressions
