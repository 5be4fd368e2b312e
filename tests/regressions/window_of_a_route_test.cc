// Reported: the window of a route that ignores num_ctx: prompt + answer == 4096, whatever the
// prompt.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

std::string reply(int prompt, int output) {
    return R"({"choices":[{"index":0,"finish_reason":"length","message":{"role":"assistant","content":"and so the report goes on"}}],"usage":{"prompt_tokens":)" +
           std::to_string(prompt) + R"(,"completion_tokens":)" + std::to_string(output) +
           R"(,"total_tokens":4096}})";
}

TEST(WindowOfARoute, AConstantTotalIsTheWindowAndNotATokenLimit) {
    const auto first = Exchange("a1").asks(8000, "p1").whole(200, reply(212, 3884)).ends(),
               second = Exchange("a2").asks(8000, "p2").whole(200, reply(97, 3999)).ends();
    for (const judge::Finding& finding : judge::judge_together({first, second}).findings) {
        EXPECT_EQ(finding.cause, Cause::kContextLimit) << word(finding);
        EXPECT_EQ(finding.layer, Layer::kSettings);
    }
}

}  // namespace
}  // namespace fullstop::regressions
