// Every way an upstream can end, in every dialect: no cut answer may look whole to the client,
// every cut must carry its cause, and a whole answer must pass byte for byte. "Laundered" is judged
// from the client's bytes alone, by rules that are written here and not taken from the gateway.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <iostream>

#include "gateway/test_upstream.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {
namespace {

using answer::Cause;
using testing::HasSubstr;
using testing::Not;

std::string delta(std::string_view content) {
    return R"({"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":")" +
           std::string(content) + R"("},"finish_reason":null}]})";
}

/// A dialect as its server writes it: pieces of the body, the last of which ends the answer.
struct Dialect {
    std::string name, path, type;
    std::vector<std::string> pieces;  ///< content
    std::vector<std::string> ends;    ///< finish reason and terminator
    std::string error;                ///< in its framing
    std::string error_field;          ///< an error spoken beside the usual shape
    bool stream = true;
};

std::string typed(const std::string& type, const std::string& members, bool named = true) {
    return wire::sse_event(R"({"type":")" + type + "\"" + members + "}", named ? type : "");
}

/// The dialects whose own end event has to come.
std::vector<Dialect> typed_dialects() {
    const std::string output =
        R"("object":"response","output":[{"type":"message","content":[{"type":"output_text","text":"one two"}]}])";
    return {
        {"messages stream",
         "/v1/messages",
         "text/event-stream",
         {typed(
              "message_start",
              R"(,"message":{"type":"message","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":0}})"),
          typed("content_block_delta", R"(,"index":0,"delta":{"type":"text_delta","text":"one "})"),
          typed("content_block_delta", R"(,"index":0,"delta":{"type":"text_delta","text":"two"})")},
         {typed("message_delta",
                R"(,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2})"),
          typed("message_stop", "")},
         wire::sse_event(R"({"type":"error","error":{"type":"overloaded_error","message":"boom"}})",
                         "error"),
         wire::sse_event(
             R"({"code":500,"message":"Context size has been exceeded.","type":"server_error"})",
             "error")},
        {"messages body",
         "/v1/messages",
         "application/json",
         {R"({"type":"message","role":"assistant","content":[{"type":"text",)",
          R"("text":"one two )"},
         {R"(three"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":3}})"},
         "",
         "",
         false},
        {"responses stream",
         "/v1/responses",
         "text/event-stream",
         {typed("response.created", R"(,"response":{"object":"response","status":"in_progress"})"),
          typed("response.output_text.delta", R"(,"delta":"one ")"),
          typed("response.output_text.delta", R"(,"delta":"two")")},
         {typed("response.completed", R"(,"response":{"status":"completed",)" + output + "}")},
         typed(
             "response.failed",
             R"(,"response":{"object":"response","status":"failed","error":{"code":"server_error","message":"boom"}})"),
         wire::sse_event(
             R"({"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}})")},
        {"responses stream without event lines, and [DONE] behind it",
         "/v1/responses",
         "text/event-stream",
         {typed("response.output_text.delta", R"(,"delta":"one ")", false),
          typed("response.output_text.delta", R"(,"delta":"two")", false)},
         {wire::sse_event(
              R"({"response":{"incomplete_details":{"reason":"max_output_tokens"},"status":"incomplete",)" +
              output + R"(},"type":"response.incomplete"})"),
          wire::sse_event("[DONE]")},
         typed("response.failed", R"(,"response":{"status":"failed"})"),
         wire::sse_event(R"({"type":"error","code":"x","message":"boom"})")},
        {"responses body",
         "/v1/responses",
         "application/json",
         {"{" + output, R"(,"usage":{"input_tokens":3,)"},
         {R"("output_tokens":3},"status":"completed"})"},
         "",
         "",
         false},
    };
}

std::vector<Dialect> untyped_dialects() {
    const auto sse = [](std::string_view data) { return wire::sse_event(data); };
    const std::string native = R"({"index":0,"content":"a b","stop":false,"tokens_predicted":1})";
    const std::string line =
        "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"a "
        "b\"},\"done\":false}\n";
    return {
        {"openai chat stream",
         "/v1/chat/completions",
         "text/event-stream",
         {sse(delta("one ")), sse(delta("two ")), sse(delta("three"))},
         {sse(R"({"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"),
          sse("[DONE]")},
         sse(R"({"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}})"),
         "error: {\"code\":500,\"message\":\"boom\",\"type\":\"server_error\"}\n\n"},
        {"openai chat body",
         "/v1/chat/completions",
         "application/json",
         {R"({"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",)",
          R"("content":"one two )"},
         {R"(three"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":3}})"},
         "",
         "",
         false},
        {"llama-server native stream",
         "/completion",
         "text/event-stream",
         {sse(native), sse(native)},
         {sse(
             R"({"index":0,"content":"","stop":true,"stop_type":"eos","truncated":false,"tokens_predicted":2,"tokens_evaluated":5})")},
         sse(R"({"error":{"code":500,"message":"Input prompt is too big","type":"server_error"}})"),
         "error: {\"code\":500,\"message\":\"slot unavailable\",\"type\":\"server_error\"}\n\n"},
        {"ollama chat lines",
         "/api/chat",
         "application/x-ndjson",
         {line, line},
         {"{\"model\":\"m\",\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\","
          "\"prompt_eval_count\":5,\"eval_count\":2}\n"},
         "{\"error\":\"unexpected EOF\"}\n",
         "{\"model\":\"m\",\"error\":\"runner gone\",\"done\":false}\n"},
        {"ollama generate lines",
         "/api/generate",
         "application/x-ndjson",
         {"{\"model\":\"m\",\"response\":\"a\",\"done\":false}\n",
          "{\"model\":\"m\",\"response\":\" b\",\"done\":false}\n"},
         {"{\"model\":\"m\",\"response\":\"\",\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_"
          "count\":5,\"eval_count\":2}\n"},
         "{\"error\":\"unexpected EOF\"}\n",
         "{\"model\":\"m\",\"error\":\"runner gone\",\"done\":false}\n"},
        {"ollama chat body",
         "/api/chat",
         "application/json",
         {R"({"model":"m","message":{"role":"assistant",)", R"("content":"one two )"},
         {R"(three"},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":3})"},
         "",
         "",
         false},
        {"openai completions stream",
         "/v1/completions",
         "text/event-stream",
         {sse(R"({"object":"text_completion","choices":[{"index":0,"text":"one "}]})"),
          sse(R"({"object":"text_completion","choices":[{"index":0,"text":"two"}]})")},
         {sse(R"({"object":"text_completion","choices":[{"index":0,"text":"","finish_reason":"stop"}]})"),
          sse("[DONE]")},
         sse(R"({"error":{"code":500,"message":"out of memory","type":"server_error"}})"),
         "error: {\"code\":500,\"message\":\"boom\",\"type\":\"server_error\"}\n\n"},
        {"openai completions body",
         "/v1/completions",
         "application/json",
         {R"({"object":"text_completion","choices":[{"index":0,)", R"("text":"one two )"},
         {R"(three","finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":3}})"},
         "",
         "",
         false},
        {"llama-server native body",
         "/completion",
         "application/json",
         {R"({"index":0,)", R"("content":"one two )"},
         {R"(three","stop":true,"stop_type":"eos","tokens_predicted":3,"tokens_evaluated":5})"},
         "",
         "",
         false},
        {"koboldcpp stream",
         "/api/extra/generate/stream",
         "text/event-stream",
         {wire::sse_event(R"({"token":"a","finish_reason":"null"})", "message"),
          wire::sse_event(R"({"token":" b","finish_reason":"null"})", "message")},
         {wire::sse_event(R"({"token":"","finish_reason":"stop"})", "message")},
         wire::sse_event(R"({"error":{"msg":"generation failed","type":"server_error"}})",
                         "message"),
         wire::sse_event(R"({"token":"","finish_reason":"null","error":"boom"})", "message")},
        {"koboldcpp body",
         "/api/v1/generate",
         "application/json",
         {R"({"results":[{)", R"("text":"one two )"},
         {R"(three","finish_reason":"stop","prompt_tokens":5,"completion_tokens":3}]})"},
         "",
         "",
         false},
        {"tgi stream",
         "/generate_stream",
         "text/event-stream",
         {sse(R"({"index":1,"token":{"id":5,"text":"Hi","special":false},"generated_text":null,"details":null})"),
          sse(R"({"index":2,"token":{"id":6,"text":" you","special":false},"generated_text":null,"details":null})")},
         {sse(
             R"({"index":3,"token":{"id":2,"text":"</s>","special":true},"generated_text":"Hi you","details":{"finish_reason":"eos_token","generated_tokens":3}})")},
         sse(R"({"error":"Request failed during generation: oom","error_type":"generation"})"),
         sse(R"({"index":3,"error":"Request failed during generation: oom","error_type":"generation"})")},
        {"tgi body",
         "/generate",
         "application/json",
         {R"({"generated_text":)", R"("one two )"},
         {R"(three","details":{"finish_reason":"eos_token"}})"},
         "",
         "",
         false},
        {"sglang stream",
         "/generate",
         "text/event-stream",
         {sse(R"({"text":"ab","meta_info":{"prompt_tokens":4,"completion_tokens":1,"finish_reason":null}})"),
          sse(R"({"text":"abcd","meta_info":{"prompt_tokens":4,"completion_tokens":2,"finish_reason":null}})")},
         {sse(R"({"text":"abcd.","meta_info":{"prompt_tokens":4,"completion_tokens":3,"finish_reason":{"type":"stop","matched":2}}})"),
          sse("[DONE]")},
         sse(R"({"error":{"message":"the scheduler died","type":"server_error","code":500}})"),
         sse(R"({"text":"abcd","error":"boom","meta_info":{"prompt_tokens":4,"completion_tokens":2,"finish_reason":null}})")},
    };
}

std::vector<Dialect> dialects() {
    std::vector<Dialect> out = untyped_dialects();
    for (Dialect& each : typed_dialects()) out.push_back(std::move(each));
    return out;
}

enum class Framed { kChunked, kLength, kClose };

/// Head and the pieces as they go over the wire. `whole_length`: what content-length announces.
std::string head_of(const Dialect& dialect, Framed framed, std::size_t whole_length) {
    wire::Headers headers = {{"Content-Type", dialect.type}, {"Server", "scripted"}};
    if (framed == Framed::kChunked) headers.emplace_back("Transfer-Encoding", "chunked");
    if (framed == Framed::kLength)
        headers.emplace_back("Content-Length", std::to_string(whole_length));
    return wire::response_head(200, headers);
}

std::string joined(const std::vector<std::string>& pieces, Framed framed) {
    std::string out;
    for (const auto& piece : pieces) out += framed == Framed::kChunked ? wire::chunk(piece) : piece;
    return out;
}

std::string plain(const std::vector<std::string>& pieces) { return joined(pieces, Framed::kClose); }

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

enum class After { kFin, kRst, kNothing };

void end_with(Bench& bench, After after) {
    if (after == After::kFin) bench.close(net::CloseKind::kFin);
    if (after == After::kRst) bench.close(net::CloseKind::kRst);
    if (after == After::kNothing) bench.silence();
}

Seen relay(const Dialect& dialect, std::string_view upstream, After after,
           std::size_t cut_every = 0) {
    Bench bench;
    bench.request(bench.post(dialect.path));
    bench.connected();
    if (cut_every == 0) cut_every = std::max<std::size_t>(1, upstream.size());
    for (std::size_t from = 0; from < upstream.size(); from += cut_every)
        bench.receive(upstream.substr(from, cut_every));
    end_with(bench, after);
    EXPECT_TRUE(bench.seen.closed) << dialect.name << ": the client still waits";
    EXPECT_EQ(bench.connects, 1) << "a retry";
    EXPECT_FALSE(bench.timer) << "a timer outlives its exchange";
    EXPECT_EQ(bench.gateway.running(), 0U);
    return bench.seen;
}

/// Would a client of this dialect take the bytes for a whole answer? Any one sign of an orderly end
/// is enough.
bool looks_whole(const Dialect& dialect, const Seen& seen) {
    const answer::Record record = seen.record();
    if (record.status != 200 || record.end.error) return false;
    if (dialect.stream)
        return record.end.transport == answer::Transport::kClean || record.end.terminator ||
               seen.kept;
    return record.end.transport == answer::Transport::kClean || seen.kept;
}

/// Of the gateway's own error object, wherever it stands; "" when there is none.
std::string cause_in_band(const Seen& seen) {
    const std::string body = seen.body(), mark = "\"stop\":{\"cause\":\"";
    const auto at = body.find(mark);
    return at == std::string::npos
               ? ""
               : body.substr(at + mark.size(), body.find('"', at + mark.size()) - at - mark.size());
}

struct Row {
    std::string name;
    std::string bytes;
    After after = After::kFin;
    Cause cause = Cause::kConnectionBroken;
    bool object = true;  ///< an in-band error object of the gateway is due
};

/// Every cut of the matrix for one dialect and framing.
std::vector<Row> cuts(const Dialect& d, Framed framed) {
    const std::string whole = plain(d.pieces + d.ends);
    const std::string head = head_of(d, framed, whole.size() + 500);
    const std::string some = head + joined(d.pieces, framed);
    const std::string last = framed == Framed::kChunked ? wire::last_chunk() : "";
    const std::string half = d.ends.front().substr(0, d.ends.front().size() / 2);
    const bool object = d.stream;
    std::vector<Row> rows = {
        {"FIN", some, After::kFin, Cause::kConnectionBroken, object},
        {"RST", some, After::kRst, Cause::kConnectionBroken, object},
        {"stall", some, After::kNothing, Cause::kGatewayIdleTimeout, object},
        {"FIN after the head", head, After::kFin, Cause::kConnectionBroken, object},
        {"half event, FIN", some + joined({half}, framed), After::kFin, Cause::kConnectionBroken,
         object},
        {"half event, stall", some + joined({half}, framed), After::kNothing,
         Cause::kGatewayIdleTimeout, object},
    };
    if (framed == Framed::kChunked) {
        rows.push_back({"FIN inside a chunk", some + "40\r\n" + d.ends.front().substr(0, 20),
                        After::kFin, Cause::kConnectionBroken, object});
        rows.push_back({"chunk framing is garbage", some + "this is no chunk size\r\n\r\n",
                        After::kFin, Cause::kConnectionBroken, object});
        rows.push_back({"a raw 500 after a piece",
                        some + "HTTP/1.1 500 Internal Server Error\r\n\r\n", After::kFin,
                        Cause::kConnectionBroken, object});
        rows.push_back({"clean end without finish", some + last, After::kFin,
                        Cause::kConnectionBroken, object});
        rows.push_back({"clean end after half an event", some + wire::chunk(half) + last,
                        After::kFin, Cause::kConnectionBroken, object});
        rows.push_back({"clean end after nothing", head + last, After::kFin,
                        Cause::kConnectionBroken, object});
        rows.push_back({"garbage, then a clean end",
                        head + wire::chunk("\x01\x02 no event \xFF\n\n") + last, After::kFin,
                        Cause::kConnectionBroken, object});
    }
    if (d.stream) {
        rows.push_back({"error object", some + joined({d.error}, framed) + last, After::kFin,
                        Cause::kServerError, false});
        rows.push_back({"error object, then a stall", some + joined({d.error}, framed),
                        After::kNothing, Cause::kServerError, false});
        rows.push_back({"error object after the finish",
                        some + joined({d.ends.front(), d.error}, framed) + last, After::kFin,
                        Cause::kServerError, false});
        if (d.ends.size() > 1 && d.ends.front().find("incomplete") == std::string::npos) {
            const std::string done = some + joined({d.ends.back()}, framed);
            rows.push_back({"its own end without a reason", done + last, After::kFin,
                            Cause::kConnectionBroken, object});
            rows.push_back({"its own end without a reason, RST", done, After::kRst,
                            Cause::kConnectionBroken, object});
            rows.push_back({"its own end without a reason, then a stall", done, After::kNothing,
                            Cause::kGatewayIdleTimeout, object});
            rows.push_back({"error object, then its own end",
                            some + joined({d.error, d.ends.back()}, framed) + last, After::kFin,
                            Cause::kServerError, false});
        }
        rows.push_back({"error field", some + joined({d.error_field}, framed) + last, After::kFin,
                        Cause::kServerError, false});
    }
    return rows;
}

/// True when the client could take it for a whole answer. `holds_events`: as with `continuation`.
bool launders(const Dialect& dialect, const Row& row, bool holds_events) {
    GatewayOptions options = Bench::default_options();
    options.policy.continuation = holds_events;
    Bench bench(options);
    bench.request(bench.post(
        dialect.path,
        holds_events ? R"({"stream":true,"messages":[{"role":"user","content":"x"}]})" : "{}"));
    bench.connected();
    bench.receive(row.bytes);
    end_with(bench, row.after);
    const Seen seen = bench.seen;
    EXPECT_TRUE(seen.closed);
    EXPECT_FALSE(looks_whole(dialect, seen)) << seen.raw;
    EXPECT_THAT(seen.raw, Not(HasSubstr("[DONE]")));
    EXPECT_FALSE(seen.raw.ends_with("\r\n0\r\n\r\n")) << seen.raw;
    EXPECT_FALSE(seen.kept);
    const std::string name(answer::to_string(row.cause));
    if (row.object) {
        EXPECT_EQ(cause_in_band(seen), name) << seen.raw;
    } else {
        EXPECT_EQ(cause_in_band(seen), "");
    }
    bench.seen = {};
    bench.request(bench.get("/metrics"));
    EXPECT_THAT(bench.seen.raw, HasSubstr("fullstop_answers_total{cause=\"" + name + "\""))
        << row.name;
    return looks_whole(dialect, seen);
}

TEST(TruthMatrix, NoCutLooksWholeAndEachSaysWhy) {
    int rows = 0, laundered = 0;
    for (const Dialect& dialect : dialects()) {
        for (const Framed framed : {Framed::kChunked, Framed::kLength, Framed::kClose}) {
            for (const Row& row : cuts(dialect, framed)) {
                SCOPED_TRACE(dialect.name + ", framing " +
                             std::to_string(static_cast<int>(framed)) + ": " + row.name);
                for (const bool holds_events : {false, true}) {
                    ++rows;
                    laundered += launders(dialect, row, holds_events) ? 1 : 0;
                }
            }
        }
    }
    std::cout << "truth matrix: " << rows << " cut answers, laundered " << laundered << "\n";
    EXPECT_EQ(laundered, 0);
    EXPECT_GT(rows, 100);
}

TEST(TruthMatrix, AWholeAnswerPassesByteForByte) {
    for (const Dialect& dialect : dialects()) {
        for (const Framed framed : {Framed::kChunked, Framed::kLength, Framed::kClose}) {
            SCOPED_TRACE(dialect.name + ", framing " + std::to_string(static_cast<int>(framed)));
            const auto pieces = dialect.pieces + dialect.ends;
            const std::string upstream = head_of(dialect, framed, plain(pieces).size()) +
                                         joined(pieces, framed) +
                                         (framed == Framed::kChunked ? wire::last_chunk() : "");
            const Seen seen = relay(dialect, upstream, After::kFin);
            EXPECT_EQ(seen.body(), plain(pieces));
            EXPECT_TRUE(looks_whole(dialect, seen)) << seen.raw;
            EXPECT_TRUE(seen.kept);
            EXPECT_TRUE(seen.record().end.reason);
            EXPECT_EQ(cause_in_band(seen), "");
        }
    }
}

TEST(TruthMatrix, AStreamWithoutDoneIsWholeOnlyWhenItsFramingEnded) {
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

TEST(TruthMatrix, AStreamWhoseLengthEndsInsideAnEventIsACut) {
    const Dialect chat = dialects().front();
    const std::string body =
        plain(chat.pieces + std::vector{chat.ends.front()}) + chat.error.substr(0, 20);
    const Seen seen = relay(chat, head_of(chat, Framed::kLength, body.size()) + body, After::kFin);
    EXPECT_FALSE(looks_whole(chat, seen));
    EXPECT_EQ(cause_in_band(seen), "connection_broken");
}

TEST(TruthMatrix, AnAnswerWhoseFramingBreaksBehindItsTerminatorIsPassedOnAsItWas) {
    const Dialect chat = dialects().front();
    const auto pieces = chat.pieces + chat.ends;
    const Seen seen = relay(
        chat, head_of(chat, Framed::kChunked, 0) + joined(pieces, Framed::kChunked), After::kFin);
    EXPECT_EQ(seen.body(), plain(pieces));
    EXPECT_FALSE(seen.raw.ends_with("\r\n0\r\n\r\n"));
    EXPECT_FALSE(seen.kept);
}

TEST(TruthMatrix, AnOllamaLineThatSaysDoneWithoutAReasonIsHeldBack) {
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

TEST(TruthMatrix, ATrueEndGoesOnBeforeItsFramingEnds) {
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
TEST(TruthMatrix, TheErrorObjectOfMessagesAndResponsesIsAnEventOfTheirs) {
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

TEST(TruthMatrix, OneUnfinishedChoiceOfTwoIsACut) {
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

TEST(TruthMatrix, AnErrorStatusBeforeTheAnswerIsTheUpstreamsOwnWord) {
    const std::string body = R"({"error":{"message":"boom","type":"server_error","code":500}})";
    for (const Dialect& dialect : dialects()) {
        const Seen seen =
            relay(dialect, wire::whole_response(500, "application/json", body), After::kFin);
        EXPECT_EQ(seen.body(), body);
        EXPECT_EQ(seen.record().status, 500);
    }
}

/// The same bytes in any cut: the same head, the same body, the same end. Chunk sizes follow the
/// reads and may differ.
TEST(TruthMatrix, AnyCutOfTheUpstreamsBytesGivesTheClientTheSame) {
    std::vector<std::pair<Dialect, Row>> all;
    for (const Dialect& dialect : dialects())
        for (const Framed framed : {Framed::kChunked, Framed::kLength, Framed::kClose}) {
            for (const Row& row : cuts(dialect, framed)) all.emplace_back(dialect, row);
            const auto pieces = dialect.pieces + dialect.ends;
            all.emplace_back(dialect,
                             Row{.name = "whole",
                                 .bytes = head_of(dialect, framed, plain(pieces).size()) +
                                          joined(pieces, framed) +
                                          (framed == Framed::kChunked ? wire::last_chunk() : "")});
        }
    // Times in the error's words depend on how many reads there were, a request's identity on
    // nothing.
    const auto timeless = [](std::string text) {
        const auto at = text.find("\"error\":{\"message\"");
        return at == std::string::npos || text.find("\"fullstop\"", at) == std::string::npos
                   ? text
                   : text.substr(0, at);
    };
    for (const auto& [dialect, row] : all) {
        SCOPED_TRACE(dialect.name + ": " + row.name);
        const Seen once = relay(dialect, row.bytes, row.after);
        for (const std::size_t every : {1, 2, 3, 7, 64}) {
            const Seen cut = relay(dialect, row.bytes, row.after, every);
            ASSERT_EQ(cut.head(), once.head());
            ASSERT_EQ(timeless(cut.body()), timeless(once.body())) << every;
            ASSERT_EQ(cut.raw.ends_with("\r\n0\r\n\r\n"), once.raw.ends_with("\r\n0\r\n\r\n"))
                << every;
            ASSERT_EQ(cut.kept, once.kept);
            ASSERT_EQ(cause_in_band(cut), cause_in_band(once));
        }
    }
}

/// An answer of random pieces that stops after any number of its bytes never looks whole, unless
/// all its facts came.
RC_GTEST_PROP(TruthMatrixProperty, StoppingAnywhereNeverLooksWhole, ()) {
    const auto all = dialects();
    const Dialect dialect = all[*rc::gen::inRange<std::size_t>(0, all.size())];
    const Framed framed = *rc::gen::element(Framed::kChunked, Framed::kLength, Framed::kClose);
    const After after = *rc::gen::element(After::kFin, After::kRst, After::kNothing);
    const auto pieces = dialect.pieces + dialect.ends;
    const std::string upstream = head_of(dialect, framed, plain(pieces).size()) +
                                 joined(pieces, framed) +
                                 (framed == Framed::kChunked ? wire::last_chunk() : "");
    const std::size_t stop = *rc::gen::inRange<std::size_t>(0, upstream.size());
    const std::size_t every = *rc::gen::inRange<std::size_t>(1, 80);
    const Seen seen = relay(dialect, upstream.substr(0, stop), after, every);
    std::string facts = plain(pieces);  // the line ends behind the last event add nothing
    // Some servers write [DONE] behind the own end of Responses, which says all without it.
    if (dialect.path.ends_with("/responses")) facts = facts.substr(0, facts.find("data: [DONE]"));
    facts.resize(facts.find_last_not_of('\n') + 1);
    const bool all_facts_came = seen.body().find(facts) != std::string::npos;
    RC_ASSERT(all_facts_came || !looks_whole(dialect, seen));
    RC_ASSERT(all_facts_came || !seen.raw.ends_with("\r\n0\r\n\r\n"));
    RC_ASSERT(all_facts_came || !seen.kept || seen.record().status != 200);
}

}  // namespace
}  // namespace fullstop::gateway
