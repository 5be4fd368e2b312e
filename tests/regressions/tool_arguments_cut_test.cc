// Reported: tool_calls although max_tokens cut the arguments.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(ToolArgumentsCut, ArgumentsLeftOpenAtTheLimitAreTheLimit) {
    const auto record =
        Exchange()
            .asks(64)
            .stream()
            .event(
                R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"set_alarm","arguments":"{\"when\": \"06"}}]},"finish_reason":null}]})")
            .event(finish("tool_calls"))
            .event(usage(50, 64))
            .done()
            .last_chunk()
            .ends();
    EXPECT_EQ(judged(record).cause, Cause::kTokenLimit) << word(judged(record));
}

TEST(ToolArgumentsCut, ClosedArgumentsAreACompleteCall) {
    const auto record =
        Exchange()
            .asks(64)
            .stream()
            .event(
                R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"set_alarm","arguments":"{\"when\": \"06:00\"}"}}]},"finish_reason":null}]})")
            .event(finish("tool_calls"))
            .event(usage(50, 21))
            .done()
            .last_chunk()
            .ends();
    EXPECT_EQ(judged(record).cause, Cause::kNaturalEnd) << word(judged(record));
}

}  // namespace
}  // namespace fullstop::regressions
