// Reported: content null with stop and 127 counted tokens: the parser swallowed the text.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

std::string reply(int tokens) {
    return R"({"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":null,"tool_calls":[]}}],"usage":{"prompt_tokens":310,"completion_tokens":)" +
           std::to_string(tokens) + "}}";
}

TEST(TextSwallowedByTheParser, CountedTokensAndNothingVisibleAreLostOutput) {
    EXPECT_EQ(judged(Exchange().whole(200, reply(127)).ends()).cause, Cause::kOutputLost)
        << word(judged(Exchange().whole(200, reply(127)).ends()));
}

TEST(TextSwallowedByTheParser, OneTokenIsANaturalEmptyAnswer) {
    EXPECT_EQ(judged(Exchange().whole(200, reply(1)).ends()).cause, Cause::kNaturalEnd);
}

}  // namespace
}  // namespace fullstop::regressions
