// Reported: no max_tokens in the request means a tiny default of the server.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

std::string reply(int prompt) {
    return R"({"choices":[{"index":0,"finish_reason":"length","message":{"content":"... the path bends towards"}}],"usage":{"prompt_tokens":)" +
           std::to_string(prompt) + R"(,"completion_tokens":100}})";
}

answer::Record asked_for_nothing(const std::string& id, int prompt) {
    Exchange exchange(id);
    answer::Record record = exchange.whole(200, reply(prompt)).ends();
    record.request.prompt_id = id;
    return record;
}

TEST(TinyDefaultLimit, AConstantLengthOverDifferentPromptsIsADefaultOfTheServer) {
    const auto findings =
        judge::judge_together(
            {asked_for_nothing("p1", 21), asked_for_nothing("p2", 47), asked_for_nothing("p3", 33)})
            .findings;
    for (const judge::Finding& finding : findings) {
        EXPECT_EQ(finding.cause, Cause::kDefaultTokenLimit) << word(finding);
        EXPECT_EQ(finding.layer, Layer::kSettings);
        EXPECT_EQ(finding.shortened, true);
    }
}

}  // namespace
}  // namespace fullstop::regressions
