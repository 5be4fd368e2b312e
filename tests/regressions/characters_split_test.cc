// Reported: characters split across chunks: whole in the bytes, destroyed by a hop that decodes
// chunk by chunk.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(CharactersSplit, ACharacterSplitByChunksIsWhole) {
    const std::string event = wire::sse_event(delta("\xE4\xBD\xA0\xE5\xA5\xBD\xE3\x80\x82"));
    const std::size_t middle = event.find('\xA0');
    const answer::Record record = Exchange()
                                      .stream()
                                      .chunk(event.substr(0, middle))
                                      .chunk(event.substr(middle))
                                      .event(finish("stop"))
                                      .done()
                                      .last_chunk()
                                      .ends();
    EXPECT_EQ(record.text, "\xE4\xBD\xA0\xE5\xA5\xBD\xE3\x80\x82");
    EXPECT_EQ(judged(record).cause, Cause::kNaturalEnd) << word(judged(record));
}

TEST(CharactersSplit, DestroyedCharactersPointAtAHopAndLeaveTheEndAlone) {
    const judge::Finding finding =
        judged(Exchange()
                   .stream()
                   .event(delta("\xEF\xBF\xBD\xEF\xBF\xBD\xE5\xA5\xBD\xE3\x80\x82"))
                   .event(finish("stop"))
                   .done()
                   .last_chunk()
                   .ends());
    EXPECT_EQ(finding.cause, Cause::kNaturalEnd) << word(finding);
    bool rewrite = false;
    for (const judge::Alternative& other : finding.alternatives)
        rewrite = rewrite || other.cause == Cause::kGatewayRewrite;
    EXPECT_TRUE(rewrite);
}

}  // namespace
}  // namespace fullstop::regressions
