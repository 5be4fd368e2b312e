// Reported: an explicit max_tokens silently clamped by the model's generation config.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(LimitClamped, AConstantLengthBelowTheRequestedOneIsAClamp) {
    std::vector<answer::Record> records;
    for (int i = 0; i < 3; ++i)
        records.push_back(
            Exchange("a" + std::to_string(i))
                .asks(5000, "p" + std::to_string(i))
                .whole(
                    200,
                    R"({"choices":[{"index":0,"finish_reason":"length","message":{"content":"and on"}}],"usage":{"prompt_tokens":)" +
                        std::to_string(64 + 9 * i) + R"(,"completion_tokens":2048}})")
                .ends());
    for (const judge::Finding& finding : judge::judge_together(records).findings) {
        EXPECT_EQ(finding.cause, Cause::kDefaultTokenLimit) << word(finding);
        EXPECT_EQ(finding.shortened, true);
    }
}

}  // namespace
}  // namespace fullstop::regressions
