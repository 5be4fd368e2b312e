// Whatever form an answer was stored in, it is read as if it had just come; and what fullstop
// writes it reads again.
#include "wire/captures/capture.h"

#include <gmock/gmock.h>

#include "wire/captures/base64.h"
#include "wire/test_samples.h"

namespace fullstop::wire {
namespace {

using answer::Record;
using answer::Transport;
using testing::HasSubstr;

std::vector<Record> read(std::string_view file, std::string_view request = {}) {
    auto records = read_capture(file, request);
    EXPECT_TRUE(records) << (records ? "" : records.error().message);
    return records ? std::move(*records) : std::vector<Record>{};
}
std::string refusal(std::string_view file, std::string_view request = {}) {
    const auto records = read_capture(file, request);
    EXPECT_FALSE(records);
    return records ? "" : records.error().message;
}

const std::string kStream = sse_event(delta("Hel")) + sse_event(delta("lo")) +
                            sse_event(finish("stop")) + sse_event("[DONE]");

TEST(Capture, curl_without_raw_has_lost_its_framing_and_so_its_transport) {
    const auto records = read(stream_head("text/event-stream") + kStream);
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].text, "Hello");
    EXPECT_EQ(records[0].end.transport, Transport::kUnknown);
    EXPECT_TRUE(records[0].end.terminator);
    EXPECT_EQ(records[0].framing, answer::Framing::kChunked);
}

TEST(Capture, a_raw_response_knows_its_transport) {
    EXPECT_EQ(
        read(stream_head("text/event-stream") + chunk(kStream) + last_chunk())[0].end.transport,
        Transport::kClean);
    EXPECT_EQ(read(stream_head("text/event-stream") + chunk(kStream))[0].end.transport,
              Transport::kTruncated);
    EXPECT_EQ(read(stream_head("text/event-stream") + chunk(kStream) + "2f")[0].end.transport,
              Transport::kTruncated);
}

TEST(Capture, http_2_of_curl_is_read_without_framing) {
    const auto records = read("HTTP/2 200 \r\ncontent-type: text/event-stream\r\n\r\n" + kStream);
    EXPECT_EQ(records[0].text, "Hello");
    EXPECT_EQ(records[0].http_version, "2");
    EXPECT_EQ(records[0].end.transport, Transport::kUnknown);
}

TEST(Capture, several_responses_of_one_file_are_several_answers) {
    const std::string body =
        R"({"choices":[{"message":{"content":"one"},"finish_reason":"stop"}]})";
    const auto records = read(json_response(200, body) + stream_head("text/event-stream") +
                              chunk(kStream) + last_chunk() + stream_head("text/event-stream") +
                              kStream + json_response(503, R"({"error":"busy"})"));
    ASSERT_EQ(records.size(), 4U);
    EXPECT_EQ(records[0].text, "one");
    EXPECT_EQ(records[1].end.transport, Transport::kClean);
    EXPECT_EQ(records[2].text, "Hello");
    EXPECT_EQ(records[3].status, 503);
}

TEST(Capture, heads_on_the_way_are_no_answers) {
    const auto records = read(
        "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 307 Temporary Redirect\r\nLocation: "
        "/v1\r\nContent-Length: 5\r\n\r\n"
        "HTTP/1.1 100 Continue\r\n\r\n" +
        json_response(200, R"({"choices":[{"text":"x","finish_reason":"stop"}]})"));
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].text, "x");
}

TEST(Capture, a_bare_body_has_no_moments_and_tells_its_dialect) {
    const auto sse = read(kStream)[0];
    EXPECT_EQ(sse.text, "Hello");
    EXPECT_FALSE(sse.timeline.first_token);
    EXPECT_EQ(sse.request.api, answer::Api::kOpenAiChat);
    EXPECT_FALSE(sse.requested_max_tokens);
    EXPECT_EQ(read("{\"model\":\"m\",\"response\":\"a\",\"done\":false}\n{\"model\":\"m\","
                   "\"response\":\"\",\"done\":true,\"done_reason\":\"length\"}\n")[0]
                  .request.api,
              answer::Api::kOllama);
    EXPECT_TRUE(read(R"({"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]})")[0]
                    .end.terminator);
    EXPECT_TRUE(read("<html>504 Gateway Time-out</html>")[0].end.error);
}

TEST(Capture, own_lines_give_moments_request_and_the_stated_transport) {
    const auto records = read(
        R"({"fullstop_capture": 1, "request": {"method": "POST", "url": "http://h/v1/chat/completions", "body": {"model": "m", "max_tokens": 64, "seed": 3, "messages": []}}})"
        "\n{\"t_ms\": 0.0, \"event\": \"sent\"}\n"
        "{\"t_ms\": 12.5, \"event\": \"headers\", \"status\": 200, \"headers\": {\"content-type\": "
        "\"text/event-stream\", \"transfer-encoding\": "
        "\"chunked\"}}\n"
        "{\"t_ms\": 13.0, \"event\": \"bytes\", \"data\": \"data: "
        "{\\\"choices\\\":[{\\\"delta\\\":{\\\"content\\\":\\\"a\\\"}}]}\\n\\n\"}\n"
        "{\"t_ms\": 61013.0, \"event\": \"end\", \"transport\": \"truncated\"}\n");
    ASSERT_EQ(records.size(), 1U);
    const Record& record = records[0];
    EXPECT_EQ((*record.requested_max_tokens).count, 64);
    EXPECT_EQ(record.request.seed, 3);
    EXPECT_EQ(record.timeline.headers, base::from_ms(12.5));
    EXPECT_EQ(record.ttft(), base::from_ms(13.0));
    EXPECT_EQ(record.last_silence(), base::from_ms(61000));
    EXPECT_EQ(record.end.transport, Transport::kTruncated);
    EXPECT_EQ(record.disconnect.by, answer::Disconnect::By::kPeer);
}

TEST(Capture, own_lines_hold_several_answers_and_a_half_last_line_loses_only_itself) {
    const std::string one =
        "{\"fullstop_capture\": 1}\n{\"t_ms\": 1, \"event\": \"bytes\", \"data\": \"data: "
        "[DONE]\\n\\n\"}\n";
    EXPECT_EQ(read(one + one).size(), 2U);
    const auto cut = read(one + "{\"t_ms\": 2, \"event\": \"by");
    EXPECT_TRUE(cut[0].end.terminator);
    EXPECT_EQ(cut[0].end.transport, Transport::kUnknown);
}

TEST(Capture, a_bad_line_of_our_own_form_is_named) {
    EXPECT_THAT(refusal("{\"fullstop_capture\": 1}\nnot json\n{}\n"), HasSubstr("Line 2"));
    EXPECT_THAT(
        refusal("{\"fullstop_capture\": 1}\n{\"event\": \"bytes\", \"data_base64\": \"*\"}\n"),
        HasSubstr("data_base64"));
    EXPECT_THAT(refusal("{\"fullstop_capture\": 1}\n{\"event\": \"bytes\"}\n"),
                HasSubstr("neither"));
}

TEST(Capture, what_is_no_capture_is_refused_in_words) {
    EXPECT_THAT(refusal(" \n"), HasSubstr("empty"));
    EXPECT_THAT(refusal(std::string("\x7f"
                                    "ELF\0\0\0",
                                    7)),
                HasSubstr("no capture"));
    EXPECT_THAT(refusal(std::string(100000, 'x')), HasSubstr("no capture"));
    EXPECT_THAT(refusal(kStream, "[1]"), HasSubstr("not a JSON object"));
    EXPECT_THAT(refusal(R"({"log":{"entries":[{"request":{"method":"GET"}}]}})"), HasSubstr("HAR"));
}

TEST(Capture, a_separate_request_says_what_was_asked_for) {
    const auto record = read(
        kStream,
        R"({"max_tokens": 20, "stop": "END", "seed": 5, "messages": [{"role":"user","content":[{"type":"text","text":"Hi"}]}]})")
        [0];
    EXPECT_EQ((*record.requested_max_tokens).count, 20);
    EXPECT_EQ(record.request.stop, std::vector<std::string>{"END"});
    EXPECT_EQ(record.request.messages[0].content, "Hi");
    const auto open = read(kStream, R"({"max_tokens": null, "messages": []})")[0];
    EXPECT_FALSE(open.requested_max_tokens);
    EXPECT_THAT(open.requested_max_tokens.how, HasSubstr("left to the server"));
    EXPECT_FALSE(read(kStream, R"({"options": {"num_predict": -1}, "messages": []})")[0]
                     .requested_max_tokens);
}

TEST(Capture, a_har_file_gives_its_answers_and_leaves_the_rest) {
    const std::string har = R"({"log":{"version":"1.2","entries":[
        {"request":{"method":"GET","url":"http://h/app.js"},"response":{"status":200}},
        {"time":61000,"timings":{"blocked":1,"dns":-1,"connect":1,"send":2,"wait":500,"receive":60496},
         "request":{"method":"POST","url":"http://h/v1/chat/completions","postData":{"text":"{\"max_tokens\":32,\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}"}},
         "response":{"status":200,"statusText":"OK","headers":[{"name":"content-type","value":"text/event-stream"}],
                     "content":{"encoding":"base64","text":")" +
                            base64_encode(kStream) + R"("}}}]}})";
    const auto records = read(har);
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].text, "Hello");
    EXPECT_EQ((*records[0].requested_max_tokens).count, 32);
    EXPECT_EQ(records[0].elapsed(), base::from_ms(60996));
    EXPECT_FALSE(records[0].timeline.first_token) << "the file does not say when each event came";
    EXPECT_EQ(records[0].end.transport, Transport::kUnknown);
}

TEST(Capture, what_is_written_reads_as_the_same_answer) {
    for (const Sample& sample : samples()) {
        Record record;
        record.request.max_tokens = base::Tokens{64};
        record.request.id = "r-1";
        record.request.messages = {{"user", "Hi"}};
        record.timeline.sent = base::from_ms(1000);
        AnswerReader reader(record);
        const std::size_t half = sample.bytes.size() / 2;
        reader.bytes(std::string_view(sample.bytes).substr(0, half), base::from_ms(1500),
                     answer::StampClock::kKernel);
        reader.bytes(std::string_view(sample.bytes).substr(half), base::from_ms(2500),
                     answer::StampClock::kKernel);
        reader.end({StreamEnd::Kind::kFin}, base::from_ms(2600));
        const auto again = read(write_capture(record, "http://h:1/v1/chat/completions"));
        ASSERT_EQ(again.size(), 1U) << sample.name;
        EXPECT_EQ(again[0].text, record.text) << sample.name;
        EXPECT_EQ(again[0].reasoning, record.reasoning) << sample.name;
        EXPECT_EQ(again[0].end, record.end) << sample.name;
        EXPECT_EQ(again[0].disconnect, record.disconnect) << sample.name;
        EXPECT_EQ(again[0].framing, record.framing) << sample.name;
        EXPECT_EQ(again[0].status, record.status) << sample.name;
        EXPECT_EQ(again[0].request.id, "r-1");
        EXPECT_EQ(again[0].requested_max_tokens.value, record.requested_max_tokens.value);
        EXPECT_EQ(again[0].ttft(), record.ttft()) << sample.name;
        EXPECT_EQ(again[0].timeline.gaps, record.timeline.gaps) << sample.name;
    }
}

TEST(Capture, bytes_that_are_no_utf8_survive_the_writing) {
    Record record;
    AnswerReader reader(record);
    reader.bytes(stream_head("text/event-stream") + chunk(sse_event(delta("a\xFF"))) + last_chunk(),
                 {}, answer::StampClock::kUserSpace);
    reader.end({}, {});
    const std::string text = write_capture(record);
    EXPECT_THAT(text, HasSubstr("data_base64"));
    EXPECT_EQ(read(text)[0].text, "a\xFF");
}

TEST(Base64, decodes_what_it_encodes) {
    for (const std::string text : {"", "a", "ab", "abc", "abcd", "\xFF\x00\x80"})
        EXPECT_EQ(base64_decode(base64_encode(text)), text);
    EXPECT_EQ(base64_encode("ab"), "YWI=");
    EXPECT_EQ(base64_decode("YW\nI"), "ab");
    EXPECT_FALSE(base64_decode("Y*"));
}

TEST(Capture, a_head_that_is_no_utf8_is_written_so_that_it_can_be_read) {
    const auto records = read(
        "HTTP/1.1 408 Request Timeout\r\nx-call-id: 53\xee\xee-44\r\n"
        "content-type: application/json\r\ncontent-length: 33\r\n\r\n"
        R"({"error":{"message":"timed out"}})");
    ASSERT_EQ(records.size(), 1U);
    const auto again = read(write_capture(records[0]));
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].end.error->text, "timed out");
    EXPECT_EQ(again[0].headers.at("x-call-id"), "53\xEF\xBF\xBD\xEF\xBF\xBD-44");
}

TEST(Capture, a_reason_phrase_that_is_the_whole_error_is_kept) {
    const auto records = read("HTTP/1.1 408 Too slow, sorry\r\ncontent-length: 0\r\n\r\n");
    ASSERT_EQ(records[0].end.error->text, "Too slow, sorry");
    EXPECT_EQ(read(write_capture(records[0]))[0].end.error->text, "Too slow, sorry");
}

}  // namespace
}  // namespace fullstop::wire
