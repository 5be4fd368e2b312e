// Reported: CRLF line ends and data without a space.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(LegalSpellingsOfEvents, EveryLegalSpellingOfAnEventIsRead) {
    for (const std::string end : {"\r\n", "\n", "\r"}) {
        const answer::Record record = Exchange()
                                          .stream()
                                          .chunk("data:" + delta("ok.") + end + end)
                                          .chunk("data:" + finish("stop") + end + end)
                                          .chunk("data:[DONE]" + end + end)
                                          .last_chunk()
                                          .ends();
        EXPECT_EQ(record.text, "ok.");
        EXPECT_EQ(judged(record).cause, Cause::kNaturalEnd) << word(judged(record));
    }
}

}  // namespace
}  // namespace fullstop::regressions
