// What the serving side writes, the reading side reads.
#include "wire/http/response_text.h"

#include <gtest/gtest.h>

#include "wire/http/http_framing.h"
#include "wire/http/sse.h"

namespace fullstop::wire {
namespace {

TEST(ResponseText, a_chunk_says_its_size_in_hex_and_none_is_empty) {
    EXPECT_EQ(chunk("hello"), "5\r\nhello\r\n");
    EXPECT_EQ(chunk(std::string(291, 'x')).substr(0, 5), "123\r\n");
    EXPECT_EQ(chunk(""), "");
    EXPECT_EQ(last_chunk(), "0\r\n\r\n");
}

TEST(ResponseText, events_of_several_lines_are_several_data_lines) {
    EXPECT_EQ(sse_event("a\nb", "message"), "event: message\ndata: a\ndata: b\n\n");
    EXPECT_EQ(sse_event(""), "data: \n\n");
    EXPECT_EQ(sse_comment("ping"), ": ping\n\n");
    EXPECT_EQ(sse_comment(), ":\n\n");
}

TEST(ResponseText, heads_carry_what_was_asked_and_may_be_overridden) {
    EXPECT_EQ(response_head(503, {{"Retry-After", "1"}}),
              "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n");
    EXPECT_EQ(whole_response(200, "text/plain", "ok", {{"Connection", "keep-alive"}}),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: "
              "keep-alive\r\n\r\nok");
    const auto head = parse_head(stream_head("text/event-stream"));
    EXPECT_EQ(head->headers.at("transfer-encoding"), "chunked");
}

struct Log final : SseSink {
    void on_event(std::string_view name, std::string_view data) override {
        text.append("<").append(name).append("|").append(data).append(">");
    }
    void on_comment(std::string_view comment) override {
        text.append("(").append(comment).append(")");
    }
    void on_unknown_field(std::string_view name, std::string_view value,
                          std::string_view) override {
        text.append("{").append(name).append("=").append(value).append("}");
    }
    std::string text;
};

std::string read(std::string_view bytes) {
    Log log;
    SseReader reader;
    reader.feed(bytes, log);
    reader.finish(log);
    return log.text;
}

TEST(Sse, reads_what_the_standard_defines) {
    EXPECT_EQ(read("data: a\n\ndata:b\r\n\r\ndata:  c\r\r"), "<|a><|b><| c>");
    EXPECT_EQ(read("event: x\ndata: a\ndata: b\nid: 1\nretry: 2\n\ndata: c\n\n"), "<x|a\nb><|c>");
    EXPECT_EQ(read(":\n: hi\n\n"), "()( hi)");
    EXPECT_EQ(read("data\n\n"), "<|>");
    EXPECT_EQ(read("\xEF\xBB\xBF"
                   "data: a\n\n"),
              "<|a>");
    EXPECT_EQ(read("event: lonely\n\ndata: a\n\n"), "<|a>");
}

TEST(Sse, delivers_what_the_standard_drops) {
    EXPECT_EQ(read("error: {\"x\":1}\n\n"), "{error={\"x\":1}}");
    EXPECT_EQ(read("data: a\n"), "<|a>");
    EXPECT_EQ(read("data: a"), "<|a>");
    EXPECT_EQ(read("what is this\n"), "{what is this=}");
}

}  // namespace
}  // namespace fullstop::wire
