// What is held back of a stream, whatever the pieces, and what goes on once the end is judged.
#include "gateway/ending/held_end.h"

#include <gtest/gtest.h>

#include <vector>

namespace fullstop::gateway {
namespace {

struct Case {
    HeldEnd::By by;
    std::string body, passed,
        cut;  ///< `cut`: what goes on of the rest behind an answer that is not finished
    bool ended = true;
};

const std::string kStop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
const std::string kDelta =
    "event: content_block_delta\ndata: "
    "{\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\"}}\n\n";

std::vector<Case> cases() {
    using By = HeldEnd::By;
    return {
        {By::kDone, "data: a\n\ndata: [DONE]\n\n", "data: a\n\n", ""},
        {By::kDone, "data:[DONE]\r\n\r\nmore", "", ""},
        {By::kDone, ": x\r\rdata: \t[DONE] \rdata: b\r\r", ": x\r\r", ""},
        {By::kDone, "id: 1\ndata: [DONE]\n\n", "id: 1\n", ""},
        {By::kDone, "data: [DONE]x\n\ndata: [DON\n\n", "data: [DONE]x\n\ndata: [DON\n\n", "",
         false},
        {By::kDone, "data: say [DONE]\n\n data: [DONE]\n\n",
         "data: say [DONE]\n\n data: [DONE]\n\n", "", false},
        {By::kDone, "data: {\"a\":1}\n\ndata: [DO", "data: {\"a\":1}\n\n", "", false},
        {By::kDone, "data: {\"a", "data: {\"a", "", false},
        {By::kEventType, kDelta + kStop + kDelta, kDelta, ""},
        {By::kEventType,
         kDelta + "data: {\"response\":{\"id\":1},\"type\":\"response.completed\"}\r\n\r\n", kDelta,
         ""},
        {By::kEventType, "event: response.incomplete\r\rdata: x\r\r", "", ""},
        {By::kEventType, kDelta + "data: {\"type\":\"response.failed\"}\n\ndata: [DONE]\n\n",
         kDelta + "data: {\"type\":\"response.failed\"}\n\n", ""},
        {By::kEventType, kDelta + "event: message_stop\ndata: {\"ty", kDelta, "", false},
        {By::kEventType, kDelta + "data: {\"error\":{}}", kDelta, "data: {\"error\":{}}", false},
        {By::kLine, "{\"done\":false}\n{\"done\":true}\n\n", "{\"done\":false}\n", ""},
        {By::kLine, "{\"done\":false}\n{\"done\":true}", "{\"done\":false}\n", "", false},
        {By::kLine, "{\"done\":false}\n{\"error\":\"x\"}", "{\"done\":false}\n",
         "{\"error\":\"x\"}", false},
        {By::kLine, "\n{\"a\":{\"done\":true}}\n", "\n{\"a\":{\"done\":true}}\n", "", false},
    };
}

TEST(HeldEnd, HoldsFromTheBeginningOfAnEndWhateverThePieces) {
    for (const Case& each : cases())
        for (std::size_t every = 1; every <= each.body.size(); ++every) {
            SCOPED_TRACE(each.body + " in pieces of " + std::to_string(every));
            HeldEnd whole(each.by), cut(each.by);
            std::string passed;
            for (std::size_t at = 0; at < each.body.size(); at += every) {
                passed += whole.pass(each.body.substr(at, every));
                cut.pass(each.body.substr(at, every));
            }
            ASSERT_EQ(passed, each.passed);
            ASSERT_EQ(whole.ended(), each.ended);
            ASSERT_EQ(passed + whole.take(true), each.body) << "a whole answer keeps its bytes";
            ASSERT_EQ(cut.take(false), each.cut);
        }
}

TEST(HeldEnd, GoesOnBehindAnEndThatWasTrue) {
    HeldEnd held(HeldEnd::By::kEventType);
    EXPECT_EQ(held.pass(kStop), "");
    EXPECT_EQ(held.take(true), kStop);
    EXPECT_EQ(held.pass(kDelta), kDelta);
}

}  // namespace
}  // namespace fullstop::gateway
