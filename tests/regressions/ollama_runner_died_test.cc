// Reported: Ollama's runner dies: an error line on /api/chat, an empty chunk on /v1.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(OllamaRunnerDied, TheErrorLineNamesTheDeath) {
    const auto record =
        Exchange()
            .stream("application/x-ndjson")
            .chunk(R"({"model":"m","message":{"role":"assistant","content":" so"},"done":false})"
                   "\n")
            .chunk(R"({"error":"an error was encountered while running the model: unexpected EOF"})"
                   "\n")
            .last_chunk()
            .ends();
    EXPECT_EQ(judged(record).cause, Cause::kEngineDeath) << word(judged(record));
    EXPECT_EQ(judged(record).confidence, Confidence::kProven);
}

TEST(OllamaRunnerDied, TheEmptyModelNameGivesTheSwallowedErrorAway) {
    const auto record =
        Exchange()
            .stream()
            .event(delta(" so"))
            .event(
                R"({"id":"c1","model":"","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]})")
            .last_chunk()
            .ends();
    EXPECT_EQ(judged(record).cause, Cause::kEngineDeath) << word(judged(record));
    EXPECT_NE(judged(record).confidence, Confidence::kProven);
}

}  // namespace
}  // namespace fullstop::regressions
