// Reported: an engine abort delivered as 200, finish_reason abort and [DONE].
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(EngineAbortAs200, AbortIsTheServersDoingHoweverCleanTheRestLooks) {
    const judge::Finding finding = judged(
        Exchange()
            .stream()
            .event(delta(" and then"))
            .event(
                R"({"choices":[{"index":0,"delta":{"content":""},"finish_reason":"abort","stop_reason":null}]})")
            .done()
            .last_chunk()
            .ends());
    EXPECT_EQ(finding.cause, Cause::kAbortedByServer) << word(finding);
    EXPECT_EQ(finding.layer, Layer::kRuntime);
    EXPECT_EQ(finding.shortened, true);
}

TEST(EngineAbortAs200, WithoutStreamingToo) {
    const judge::Finding finding = judged(
        Exchange()
            .whole(
                200,
                R"({"choices":[{"index":0,"finish_reason":"abort","message":{"content":"and then"}}],"usage":{"prompt_tokens":9,"completion_tokens":2}})")
            .ends());
    EXPECT_EQ(finding.cause, Cause::kAbortedByServer) << word(finding);
}

}  // namespace
}  // namespace fullstop::regressions
