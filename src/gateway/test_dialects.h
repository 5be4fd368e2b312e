// For tests only: one short answer in every dialect, as its server writes it, with its errors.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/http/response_text.h"

namespace fullstop::gateway {

inline std::string delta(std::string_view content) {
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

inline std::string typed(const std::string& type, const std::string& members, bool named = true) {
    return wire::sse_event(R"({"type":")" + type + "\"" + members + "}", named ? type : "");
}

/// The dialects whose own end event has to come.
inline std::vector<Dialect> typed_dialects() {
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

inline std::vector<Dialect> untyped_dialects() {
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

inline std::vector<Dialect> dialects() {
    std::vector<Dialect> out = untyped_dialects();
    for (Dialect& each : typed_dialects()) out.push_back(std::move(each));
    return out;
}

}  // namespace fullstop::gateway
