// Ends that are true and ends that are not, one rule each.
#include "gateway/ending/truth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/test_endings.h"

namespace fullstop::gateway {
namespace {

using answer::Cause;
using testing::HasSubstr;
using testing::Not;

TEST(Truth, AStreamWithoutDoneIsWholeOnlyWhenItsFramingEnded) {
    const Dialect chat = dialects().front();
    const auto pieces = chat.pieces + std::vector{chat.ends.front()};
    const Seen framed = relay(
        chat,
        head_of(chat, Framed::kChunked, 0) + joined(pieces, Framed::kChunked) + wire::last_chunk(),
        After::kFin);
    EXPECT_TRUE(framed.raw.ends_with("\r\n0\r\n\r\n"));
    EXPECT_EQ(framed.body(), plain(pieces));
    const Seen unframed =
        relay(chat, head_of(chat, Framed::kClose, 0) + plain(pieces), After::kFin);
    EXPECT_FALSE(looks_whole(chat, unframed));
    EXPECT_EQ(cause_in_band(unframed), "connection_broken");
}

TEST(Truth, AStreamWhoseLengthEndsInsideAnEventIsACut) {
    const Dialect chat = dialects().front();
    const std::string body =
        plain(chat.pieces + std::vector{chat.ends.front()}) + chat.error.substr(0, 20);
    const Seen seen = relay(chat, head_of(chat, Framed::kLength, body.size()) + body, After::kFin);
    EXPECT_FALSE(looks_whole(chat, seen));
    EXPECT_EQ(cause_in_band(seen), "connection_broken");
}

TEST(Truth, AnAnswerWhoseFramingBreaksBehindItsTerminatorIsPassedOnAsItWas) {
    const Dialect chat = dialects().front();
    const auto pieces = chat.pieces + chat.ends;
    const Seen seen = relay(
        chat, head_of(chat, Framed::kChunked, 0) + joined(pieces, Framed::kChunked), After::kFin);
    EXPECT_EQ(seen.body(), plain(pieces));
    EXPECT_FALSE(seen.raw.ends_with("\r\n0\r\n\r\n"));
    EXPECT_FALSE(seen.kept);
}

TEST(Truth, AnOllamaLineThatSaysDoneWithoutAReasonIsHeldBack) {
    const std::string line = "{\"model\":\"m\",\"message\":{\"content\":\"\"},\"done\":true}\n";
    for (const Dialect& dialect : dialects()) {
        if (dialect.path != "/api/chat" || !dialect.stream) continue;
        for (const auto& [framed, last] : {std::pair(Framed::kChunked, wire::last_chunk()),
                                           std::pair(Framed::kClose, std::string())}) {
            const Seen seen = relay(dialect,
                                    head_of(dialect, framed, 0) +
                                        joined(dialect.pieces + std::vector{line}, framed) + last,
                                    After::kFin);
            EXPECT_THAT(seen.body(), Not(HasSubstr("\"done\":true")));
            EXPECT_EQ(cause_in_band(seen), "connection_broken");
        }
    }
}

TEST(Truth, ATrueEndGoesOnBeforeItsFramingEnds) {
    for (const Dialect& dialect : dialects()) {
        if (!dialect.stream) continue;
        SCOPED_TRACE(dialect.name);
        Bench bench;
        bench.request(bench.post(dialect.path));
        bench.connected();
        const auto pieces = dialect.pieces + dialect.ends;
        bench.receive(head_of(dialect, Framed::kChunked, 0) + joined(pieces, Framed::kChunked));
        EXPECT_EQ(bench.seen.body(), plain(pieces));
        EXPECT_FALSE(bench.seen.closed);
    }
}

/// In the shape that clients of these dialects look for.
TEST(Truth, TheErrorObjectOfMessagesAndResponsesIsAnEventOfTheirs) {
    for (const Dialect& dialect : typed_dialects()) {
        if (!dialect.stream) continue;
        const Seen seen =
            relay(dialect,
                  head_of(dialect, Framed::kChunked, 0) + joined(dialect.pieces, Framed::kChunked),
                  After::kFin);
        const bool messages = dialect.path == "/v1/messages";
        EXPECT_THAT(
            seen.body(),
            HasSubstr(messages ? "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":"
                               : "event: response.failed\ndata: "
                                 "{\"type\":\"response.failed\",\"response\":{"));
        EXPECT_THAT(seen.body(), HasSubstr("\"fullstop\":{\"request_id\""));
        EXPECT_TRUE(seen.record().end.error) << "and a reader of the dialect finds it";
    }
}

TEST(Truth, OneUnfinishedChoiceOfTwoIsACut) {
    const Dialect chat = dialects().front();
    const std::vector<std::string> pieces = {
        wire::sse_event(
            R"({"choices":[{"index":0,"delta":{"content":"A"},"finish_reason":"stop"}]})"),
        wire::sse_event(
            R"({"choices":[{"index":1,"delta":{"content":"B"},"finish_reason":null}]})")};
    const Seen seen = relay(
        chat,
        head_of(chat, Framed::kChunked, 0) + joined(pieces, Framed::kChunked) + wire::last_chunk(),
        After::kFin);
    EXPECT_FALSE(looks_whole(chat, seen));
    EXPECT_EQ(cause_in_band(seen), "connection_broken");
}

TEST(Truth, AnErrorStatusBeforeTheAnswerIsTheUpstreamsOwnWord) {
    const std::string body = R"({"error":{"message":"boom","type":"server_error","code":500}})";
    for (const Dialect& dialect : dialects()) {
        const Seen seen =
            relay(dialect, wire::whole_response(500, "application/json", body), After::kFin);
        EXPECT_EQ(seen.body(), body);
        EXPECT_EQ(seen.record().status, 500);
    }
}

}  // namespace
}  // namespace fullstop::gateway
