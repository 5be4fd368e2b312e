// Reported: a held-back beginning of a stop string is never sent.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(StopStringHeldBack, AMissingEndThatBeginsAStopStringIsLostOutput) {
    const auto stream = Exchange()
                            .stops_at("RED XX")
                            .stream()
                            .event(delta("BLUE"))
                            .event(delta(" GREEN "))
                            .event(finish("stop"))
                            .event(usage(9, 5))
                            .done()
                            .last_chunk()
                            .ends();
    const auto alone =
        Exchange()
            .stops_at("RED XX")
            .whole(
                200,
                R"({"choices":[{"index":0,"finish_reason":"stop","message":{"content":"BLUE GREEN RED"}}],"usage":{"prompt_tokens":9,"completion_tokens":5}})")
            .ends();
    EXPECT_EQ(judged(stream, alone).cause, Cause::kOutputLost) << word(judged(stream, alone));
}

}  // namespace
}  // namespace fullstop::regressions
