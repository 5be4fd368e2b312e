// An error never looks like an answer, and keeps its own words: in every shape that servers and
// gateways send.
#include <gmock/gmock.h>

#include "wire/limits.h"
#include "wire/test_samples.h"

namespace fullstop::wire {
namespace {

using answer::ErrorPlace;
using answer::Transport;

answer::ServerError error_in(const std::string& bytes) {
    const auto record = read_all(bytes);
    EXPECT_TRUE(record.end.error) << bytes;
    return record.end.error.value_or(answer::ServerError{});
}

TEST(Errors, llama_server_tells_it_in_the_stream_and_writes_no_done) {
    const auto record = read_all(sse_stream(
        {delta("part"),
         R"({"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}})"}));
    EXPECT_EQ(record.end.error,
              (answer::ServerError{500, "500", "server_error", "Context size has been exceeded.",
                                   ErrorPlace::kStream}));
    EXPECT_EQ(record.text, "part");
    EXPECT_FALSE(record.end.terminator);
    EXPECT_FALSE(record.end.reason);
    EXPECT_EQ(record.end.transport, Transport::kClean);
}

TEST(Errors, the_old_llama_cpp_field_named_error_is_not_dropped) {
    const auto record = read_all(
        chunked_stream({sse_event(delta("part")),
                        "error: {\"code\":500,\"message\":\"boom\",\"type\":\"server_error\"}\n\n",
                        sse_event("[DONE]")}));
    EXPECT_EQ(record.end.error->text, "boom");
    EXPECT_EQ(record.end.error->status, 500);
    EXPECT_TRUE(record.end.terminator) << "[DONE] follows there, and proves nothing";
}

TEST(Errors, an_event_named_error_is_one_whatever_it_holds) {
    EXPECT_EQ(
        error_in(chunked_stream({sse_event(R"({"reason":"gone","hint":"retry"})", "error")})).text,
        "reason: gone hint: retry");
}

TEST(Errors, codes_may_be_strings_and_types_null) {
    const auto error = error_in(sse_stream(
        {R"({"error": {"message": "litellm.Timeout: timed out", "type": null, "param": null, "code": "408"}})"}));
    EXPECT_EQ(error.code, "408");
    EXPECT_EQ(error.status, 408);
    EXPECT_EQ(error.type, "");
}

TEST(Errors, a_bare_text_an_object_named_error_and_a_detail_are_errors) {
    EXPECT_EQ(error_in(sse_stream({R"({"error":"broken"})"})).text, "broken");
    EXPECT_EQ(
        error_in(
            json_response(
                400,
                R"({"object":"error","message":"too long","type":"BadRequestError","code":400})"))
            .text,
        "too long");
    EXPECT_EQ(error_in(json_response(404, R"({"detail":"Not Found"})")).text, "Not Found");
    const auto busy = error_in(json_response(
        503,
        R"({"detail":{"msg":"Server is busy; please try again later.","type":"service_unavailable"}})"));
    EXPECT_EQ(busy.text, "Server is busy; please try again later.");
    EXPECT_EQ(busy.type, "service_unavailable");
    EXPECT_EQ(busy.status, 503);
    EXPECT_EQ(busy.where, ErrorPlace::kHttp);
}

TEST(Errors, tgi_chat_hides_the_number_in_a_field_of_its_own) {
    EXPECT_EQ(error_in(sse_stream({R"({"error":{"message":"overloaded","http_status_code":422}})",
                                   "[DONE]"}))
                  .status,
              422);
}

TEST(Errors, an_error_without_choices_beside_a_null_error_member) {
    EXPECT_FALSE(read_all(sse_stream({R"({"choices":[{"delta":{"content":"a"}}],"error":null})"}))
                     .end.error);
    EXPECT_TRUE(read_all(sse_stream({R"({"choices":[],"error":{"message":"x"}})"})).end.error);
    EXPECT_TRUE(
        read_all(
            sse_stream(
                {R"({"choices":[{"index":0,"error":{"message":"x","code":502},"finish_reason":"error"}]})"}))
            .end.error);
}

TEST(Errors, a_prompt_that_does_not_fit_gives_the_numbers) {
    const auto record = read_all(json_response(
        400,
        R"({"error":{"code":400,"message":"too big","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}})"));
    EXPECT_EQ(record.stop_details.at("error.n_prompt_tokens"), "5000");
    EXPECT_EQ(record.stop_details.at("error.n_ctx"), "4096");
}

TEST(Errors, json_behind_an_event_stream_header_and_sse_behind_plain_text_are_read) {
    EXPECT_EQ(error_in(whole_response(200, "text/event-stream",
                                      R"({"error":{"message":"no such model"}})"))
                  .text,
              "no such model");
    EXPECT_EQ(read_all(whole_response(200, "text/plain", sse_event(delta("a")))).text, "a");
}

TEST(Errors, bare_json_inside_an_event_stream_is_read) {
    EXPECT_EQ(
        error_in(chunked_stream({sse_event(delta("a")), "{\"error\":{\"message\":\"late\"}}\n"}))
            .text,
        "late");
}

TEST(Errors, a_comment_wrapped_as_data_is_a_comment) {
    const auto record = read_all(chunked_stream(
        {"data: : PROCESSING\n\n", ":\n\n", "id: 7\nretry: 3\ndata: " + delta("a") + "\n\n"}));
    EXPECT_EQ(record.comments, 2);
    EXPECT_EQ(record.unread_events, 0);
    EXPECT_EQ(record.text, "a");
}

TEST(Errors, an_html_page_is_a_failure_with_its_beginning) {
    const auto gateway = read_all(
        whole_response(504, "text/html", "<html><title>504 Gateway Time-out</title></html>"));
    EXPECT_THAT(gateway.end.error->text, testing::StartsWith("<html>"));
    EXPECT_EQ(gateway.end.error->status, 504);
    const auto page =
        read_all(whole_response(200, "text/html", "<!doctype html><p>Open WebUI</p>"));
    EXPECT_EQ(page.end.error->status, 200);
    EXPECT_FALSE(page.end.terminator);
    EXPECT_EQ(page.unread_events, 1);
}

TEST(Errors, a_status_alone_is_an_error) {
    EXPECT_EQ(error_in(whole_response(502, "text/plain", "")).text, "Bad Gateway");
    EXPECT_EQ(error_in(whole_response(503, "application/json", R"({"unknown":"shape"})")).text,
              "unknown: shape");
}

TEST(Errors, plain_words_behind_which_no_text_comes_are_an_error) {
    const std::string words = "data: Model failed with error: ShapeMismatchCat { dim: 0 }\n\n";
    const auto record =
        read_all(chunked_stream({sse_event(delta("a")), words, ":keep-alive-text\n\n"}));
    ASSERT_TRUE(record.end.error);
    EXPECT_THAT(record.end.error->text, testing::StartsWith("Model failed"));
    EXPECT_EQ(record.end.error->where, answer::ErrorPlace::kStream);
    EXPECT_FALSE(read_all(chunked_stream({words, sse_event(delta("a"))})).end.error);
    EXPECT_FALSE(
        read_all(chunked_stream({sse_event(delta("a")), words, sse_event("[DONE]")})).end.error);
}

TEST(Errors, an_event_nobody_understands_is_counted) {
    const auto record =
        read_all(sse_stream({R"({"type":"something","message":{}})", "not json", delta("a")}));
    EXPECT_EQ(record.unread_events, 2);
    EXPECT_EQ(record.text, "a");
    EXPECT_FALSE(record.end.error);
}

TEST(Limits, a_head_without_end_overflows_and_says_so) {
    answer::Record record;
    AnswerReader reader(record);
    reader.bytes("HTTP/1.1 200 OK\r\n", {}, answer::StampClock::kUserSpace);
    for (int i = 0; i < 100 && !reader.overflowed(); ++i)
        reader.bytes("X: " + std::string(1000, 'x') + "\r\n", {}, answer::StampClock::kUserSpace);
    EXPECT_TRUE(reader.overflowed());
    reader.end({StreamEnd::Kind::kClosedByUs}, {});
    EXPECT_THAT(record.end.error->text, testing::HasSubstr("head is larger than"));
}

/// Feeds `piece` until the reader has had enough, or `most` pieces.
std::size_t feed_until_full(AnswerReader& reader, const std::string& piece, std::size_t most) {
    std::size_t fed = 0;
    for (; fed < most && reader.full().empty(); ++fed)
        reader.bytes(piece, {}, answer::StampClock::kUserSpace);
    return fed;
}

const std::string kOpenStream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

TEST(Limits, an_answer_without_end_keeps_so_much_and_no_more) {
    const std::string block(100'000, 'x');
    for (const std::string& member :
         {R"("content":")" + block + "\"", R"("reasoning":")" + block + "\"",
          R"("tool_calls":[{"function":{"arguments":")" + block + "\"}}]"}) {
        answer::Record record;
        AnswerReader reader(record);
        reader.bytes(kOpenStream, {}, answer::StampClock::kUserSpace);
        EXPECT_LT(
            feed_until_full(reader,
                            R"(data: {"choices":[{"index":0,"delta":{)" + member + "}}]}\n\n", 60),
            60U);
        EXPECT_THAT(std::string(reader.full()), testing::HasSubstr("is larger than"));
        reader.bytes(
            "data: "
            "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"more\"},\"finish_reason\":"
            "\"stop\"}]}\n\n",
            {}, answer::StampClock::kUserSpace);
        EXPECT_EQ(record.text.size() + record.reasoning.size() + record.tool_calls.size(),
                  kMaxTextBytes);
        EXPECT_EQ(record.end.reason, "stop") << "a relay still reads how it ended";
        reader.end({StreamEnd::Kind::kFin}, {});
    }
}

TEST(Limits, events_without_end_keep_so_many_gaps_and_no_more) {
    answer::Record record;
    AnswerReader reader(record);
    reader.bytes(kOpenStream, {}, answer::StampClock::kUserSpace);
    std::string piece;
    for (int i = 0; i < 1000; ++i)
        piece += "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    EXPECT_LT(feed_until_full(reader, piece, 400), 400U);
    EXPECT_LE(record.timeline.gaps.size(), kMaxTextEvents);
    EXPECT_THAT(std::string(reader.full()), testing::HasSubstr("is larger than"));
}

TEST(Limits, what_brings_no_text_for_ever_is_enough_some_time) {
    std::string comments, trailers = "0\r\n", empty;
    while (comments.size() < 1'000'000) comments += ": ping\n\n";
    while (trailers.size() < 1'000'000) trailers += "X: y\r\n";
    while (empty.size() < 1'000'000) empty += "data: {\"choices\":[{\"delta\":{}}]}\n\n";
    for (const std::string& piece :
         {comments, empty, std::string(1'000'000, ' '), "<html>" + std::string(1'000'000, 'x')}) {
        answer::Record record;
        AnswerReader reader(record);
        reader.bytes(kOpenStream, {}, answer::StampClock::kUserSpace);
        EXPECT_LT(feed_until_full(reader, piece, 50), 50U) << piece.substr(0, 20);
    }
    answer::Record record;
    AnswerReader reader(record);
    reader.bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", {},
                 answer::StampClock::kUserSpace);
    reader.bytes(trailers, {}, answer::StampClock::kUserSpace);
    EXPECT_LT(feed_until_full(reader, trailers.substr(3), 50), 50U);
}

TEST(Limits, words_of_any_length_are_cut_at_a_character) {
    const std::string huge = "\u00e9" + std::string(1, 'a') + [] {
        std::string out;
        for (int i = 0; i < 100'000; ++i) out += "\u00e9";
        return out;
    }();
    const auto record = read_all(
        sse_stream({R"({"id":")" + huge + R"(","model":")" + huge +
                        R"(","choices":[{"delta":{"content":"a"},"finish_reason":")" + huge +
                        R"(","stop_reason":")" + huge + R"("}]})",
                    R"({"error":{"message":")" + huge + R"(","code":")" + huge + R"("}})"}));
    for (const std::string& word :
         {record.response_id, record.response_model, *record.end.reason,
          record.stop_details.at("stop_reason"), record.end.error->text, record.end.error->code}) {
        EXPECT_LE(word.size(), 2048U);
        EXPECT_TRUE(is_utf8(word));
    }
}

TEST(Limits, an_event_of_too_many_values_is_not_read) {
    std::string values = R"({"choices":[{"delta":{"content":"a"}}],"odd":[0)";
    for (std::size_t i = 0; i < kMaxJsonNodes; ++i) values += ",0";
    const auto record = read_all(sse_stream({values + "]}", delta("b")}));
    EXPECT_EQ(record.unread_events, 1);
    EXPECT_EQ(record.text, "b");
}

TEST(Limits, any_number_of_thoughts_and_half_characters_in_one_event_costs_no_more_than_its_size) {
    std::string thoughts, halves;
    while (thoughts.size() < kMaxTextBytes - 100) thoughts += "<think></think>";
    while (halves.size() < kMaxTextBytes / 2 - 100) halves += "\\ud83d";
    EXPECT_EQ(read_all(sse_stream({delta(thoughts), delta("a")})).text, "a");
    const auto record = read_all(sse_stream({delta(halves.substr(0, 600'000)), delta("a")}));
    EXPECT_TRUE(record.text.ends_with("a"));
}

TEST(Limits, the_end_is_read_once) {
    answer::Record record;
    AnswerReader reader(record);
    reader.bytes(sse_stream({delta("a")}), {}, answer::StampClock::kUserSpace);
    reader.end({StreamEnd::Kind::kFin}, base::Duration(1));
    const auto ended = record.timeline.ended;
    const std::string text = record.text;
    reader.end({StreamEnd::Kind::kRst}, base::Duration(2));
    EXPECT_EQ(record.timeline.ended, ended);
    EXPECT_EQ(record.text, text);
}

TEST(Limits, an_event_without_end_overflows_and_the_capture_stops) {
    answer::Record record;
    AnswerReader reader(record);
    reader.bytes("HTTP/1.1 200 OK\r\n\r\ndata: ", {}, answer::StampClock::kUserSpace);
    const std::string block(1024 * 1024, 'x');
    for (std::size_t i = 0; i < 20 && !reader.overflowed(); ++i)
        reader.bytes(block, {}, answer::StampClock::kUserSpace);
    EXPECT_TRUE(reader.overflowed());
    reader.end({StreamEnd::Kind::kClosedByUs}, {});
    EXPECT_THAT(record.end.error->text, testing::HasSubstr("event is larger than"));
    EXPECT_EQ(record.capture.bytes.size(), kMaxCaptureBytes);
    EXPECT_TRUE(record.capture.truncated);
}

TEST(Limits, errors_without_end_are_kept_up_to_a_number) {
    std::vector<std::string> events(100, R"({"error":"again"})");
    EXPECT_EQ(read_all(sse_stream(events)).server_errors.size(), kMaxServerErrors);
}

TEST(EndFacts, transport_follows_framing_and_close) {
    using Kind = StreamEnd::Kind;
    const std::string whole = sse_stream({delta("a")});
    const std::string cut = stream_head("text/event-stream") + chunk(sse_event(delta("a")));
    const std::string open = "HTTP/1.0 200 OK\r\n\r\n" + sse_event(delta("a"));
    const auto transport = [](const std::string& bytes, Kind kind) {
        return read_all(bytes, AnswerReader::Input::kHttp, kind).end.transport;
    };
    for (const Kind kind :
         {Kind::kFin, Kind::kRst, Kind::kTimedOut, Kind::kClosedByUs, Kind::kUnknown})
        EXPECT_EQ(transport(whole, kind), Transport::kClean);
    EXPECT_EQ(transport(cut, Kind::kFin), Transport::kTruncated);
    EXPECT_EQ(transport(cut, Kind::kRst), Transport::kReset);
    EXPECT_EQ(transport(cut, Kind::kTimedOut), Transport::kTimedOut);
    EXPECT_EQ(transport(cut, Kind::kClosedByUs), Transport::kClosedByUs);
    EXPECT_EQ(transport(cut, Kind::kUnknown), Transport::kTruncated);
    EXPECT_EQ(transport(open, Kind::kFin), Transport::kClean);
    EXPECT_EQ(transport(open, Kind::kRst), Transport::kReset);
    EXPECT_EQ(transport(open, Kind::kUnknown), Transport::kUnknown);
    EXPECT_EQ(transport("", Kind::kFin), Transport::kTruncated);
}

TEST(EndFacts, the_disconnect_says_who_how_and_after_how_many_bytes) {
    const std::string cut = stream_head("text/event-stream") + chunk(sse_event(delta("a")));
    const auto size = static_cast<std::int64_t>(cut.size());
    const auto disconnect = [&](StreamEnd::Kind kind) {
        return read_all(cut, AnswerReader::Input::kHttp, kind).disconnect;
    };
    using answer::Disconnect;
    EXPECT_EQ(disconnect(StreamEnd::Kind::kFin),
              (Disconnect{Disconnect::By::kPeer, Disconnect::Kind::kFin, size}));
    EXPECT_EQ(disconnect(StreamEnd::Kind::kRst),
              (Disconnect{Disconnect::By::kPeer, Disconnect::Kind::kRst, size}));
    EXPECT_EQ(disconnect(StreamEnd::Kind::kClosedByUs),
              (Disconnect{Disconnect::By::kUs, Disconnect::Kind::kFin, size}));
    EXPECT_EQ(disconnect(StreamEnd::Kind::kUnknown),
              (Disconnect{Disconnect::By::kUnknown, Disconnect::Kind::kNone, size}));
    EXPECT_EQ(read_all(sse_stream({delta("a")})).disconnect.by, Disconnect::By::kNone);
}

TEST(EndFacts, an_event_without_its_blank_line_still_counts_at_the_end) {
    const auto record = read_all("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" +
                                 sse_event(delta("a")) + "data: [DONE]");
    EXPECT_TRUE(record.end.terminator);
}

}  // namespace
}  // namespace fullstop::wire
