// For tests only: answers of every dialect as bytes, and a record as text without its moments.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "answer/record.h"
#include "tests/support/source_dir.h"
#include "wire/answer_reader.h"
#include "wire/http/response_text.h"

namespace fullstop::wire {

inline std::string golden(const std::string& name) {
    std::ifstream file(tests::source_dir() / ("tests/golden/captures/" + name), std::ios::binary);
    EXPECT_TRUE(file) << name;
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

inline answer::Record read_in_pieces(std::string_view bytes, const std::vector<std::size_t>& cuts,
                                     AnswerReader::Input input, StreamEnd::Kind end) {
    answer::Record record;
    AnswerReader reader(record, input);
    std::size_t from = 0;
    int tick = 0;
    for (const std::size_t cut : cuts) {
        reader.bytes(bytes.substr(from, cut - from), base::from_ms(++tick),
                     answer::StampClock::kUserSpace);
        from = cut;
    }
    reader.bytes(bytes.substr(from), base::from_ms(++tick), answer::StampClock::kUserSpace);
    reader.end({end}, base::from_ms(++tick));
    return record;
}

inline answer::Record read_all(std::string_view bytes,
                               AnswerReader::Input input = AnswerReader::Input::kHttp,
                               StreamEnd::Kind end = StreamEnd::Kind::kFin) {
    return read_in_pieces(bytes, {}, input, end);
}

/// An event stream as a server sends it: each event in a chunk of its own, then the last chunk.
inline std::string chunked_stream(const std::vector<std::string>& events,
                                  std::string_view content_type = "text/event-stream") {
    std::string out = stream_head(content_type);
    for (const auto& event : events) out += chunk(event);
    return out + last_chunk();
}
inline std::string sse_stream(const std::vector<std::string>& data) {
    std::vector<std::string> events;
    for (const auto& each : data) events.push_back(sse_event(each));
    return chunked_stream(events);
}
inline std::string json_response(int status, std::string_view body) {
    return whole_response(status, "application/json", body);
}

inline std::string delta(std::string_view content) {
    return R"({"choices":[{"index":0,"delta":{"content":")" + std::string(content) +
           R"("},"finish_reason":null}],"id":"c1","object":"chat.completion.chunk"})";
}
inline std::string finish(std::string_view word) {
    return R"({"choices":[{"index":0,"delta":{},"finish_reason":")" + std::string(word) +
           R"("}],"id":"c1","object":"chat.completion.chunk"})";
}

struct Sample {
    std::string name;
    std::string bytes;
};

/// One or more of every dialect and framing, with the shapes that are easy to get wrong.
inline std::vector<Sample> samples() {
    const std::string usage =
        R"({"choices":[],"usage":{"prompt_tokens":40,"completion_tokens":9,"total_tokens":49}})";
    return {
        {"chat", sse_stream({delta("Hello"), delta(", \\u4f60\\ud83d\\ude00"), finish("stop"),
                             usage, "[DONE]"})},
        {"chat_crlf", chunked_stream({"data:" + delta("a") + "\r\n\r\n", ": ping\r\n\r\n",
                                      "data:" + finish("length") + "\r\n\r\ndata:[DONE]\r\n\r\n"})},
        {"chat_lone_cr", chunked_stream({"data: " + delta("a") + "\r\r", "data: [DONE]\r\r"})},
        {"chat_bom", chunked_stream({"\xEF\xBB\xBF" + sse_event(delta("a")), sse_event("[DONE]")})},
        {"chat_multi_line", chunked_stream({"data: {\"choices\":[{\"index\":0,\ndata: "
                                            "\"delta\":{\"content\":\"two lines\"}}]}\n\n"})},
        {"chat_think", sse_stream({delta("<th"), delta("ink>rea"), delta("son</thi"),
                                   delta("nk>\\n\\nanswer"), finish("stop"), "[DONE]"})},
        {"chat_late_think_end", sse_stream({delta("reason</th"), delta("ink>answer"), "[DONE]"})},
        {"chat_reasoning",
         sse_stream({R"({"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]})", delta("42"),
                     finish("stop"), "[DONE]"})},
        {"chat_two_choices",
         sse_stream({R"({"choices":[{"index":1,"delta":{"content":"B"}}]})", delta("A"),
                     R"({"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"stop"}]})",
                     "[DONE]"})},
        {"chat_error",
         sse_stream(
             {delta("part"),
              R"({"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}})"})},
        {"old_llama_error",
         chunked_stream({sse_event(delta("part")),
                         "error: {\"code\":500,\"message\":\"boom\",\"type\":\"server_error\"}\n\n",
                         sse_event("[DONE]")})},
        {"tool_call",
         sse_stream(
             {R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\""}}]}}]})",
              R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":": 1}"}}]}}]})",
              finish("tool_calls"), "[DONE]"})},
        {"completions",
         sse_stream(
             {R"({"object":"text_completion","choices":[{"index":0,"text":"one "}]})",
              R"({"object":"text_completion","choices":[{"index":0,"text":"two","finish_reason":"length"}]})",
              "[DONE]"})},
        {"chat_body",
         json_response(
             200,
             R"({"object":"chat.completion","choices":[{"index":0,"message":{"content":"whole"},"finish_reason":"stop"}],)"
             R"("usage":{"prompt_tokens":3,"completion_tokens":1}})")},
        {"pretty_body", json_response(200,
                                      "{\n  \"choices\": [\n    {\"message\": {\"content\": "
                                      "\"whole\"},\n     \"finish_reason\": \"stop\"}\n  ]\n}\n")},
        {"llama_server",
         sse_stream(
             {R"({"index":0,"content":"a","tokens":[7],"stop":false,"tokens_predicted":1,"tokens_evaluated":5})",
              R"({"index":0,"content":"","stop":true,"stop_type":"word","stopping_word":"END","truncated":false,"tokens_predicted":2,)"
              R"("tokens_evaluated":5,"generation_settings":{"n_predict":64,"seed":7},"timings":{"prompt_n":5,"prompt_ms":12.5}})"})},
        {"ollama",
         chunked_stream({"{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"Hel",
                         "lo\"},\"done\":false}\n",
                         "{\"model\":\"m\",\"message\":{\"content\":\"\"},\"done\":true,\"done_"
                         "reason\":\"stop\",\"total_duration\":900000000,"
                         "\"load_duration\":100000000,\"prompt_eval_count\":11,\"prompt_eval_"
                         "duration\":200000000,\"eval_count\":2,\"eval_duration\":400000000}\n"},
                        "application/x-ndjson")},
        {"ollama_error", chunked_stream({"{\"model\":\"m\",\"response\":\"so\",\"done\":false}\n",
                                         "{\"error\":\"unexpected EOF\"}\n"},
                                        "application/x-ndjson")},
        {"koboldcpp",
         chunked_stream({sse_event(R"({"token":"a","finish_reason":"null"})", "message"),
                         sse_event(R"({"token":"","finish_reason":"length"})", "message")})},
        {"koboldcpp_busy",
         json_response(
             503,
             R"({"detail":{"msg":"Server is busy; please try again later.","type":"service_unavailable"}})")},
        {"tgi",
         sse_stream(
             {R"({"index":1,"token":{"id":5,"text":"Hi","special":false},"generated_text":null,"details":null})",
              R"({"index":2,"token":{"id":2,"text":"</s>","special":true},"generated_text":"Hi","details":{"finish_reason":"eos_token","generated_tokens":2,"seed":1}})"})},
        {"sglang",
         sse_stream(
             {R"({"text":"ab","meta_info":{"prompt_tokens":4,"completion_tokens":1,"finish_reason":null}})",
              R"({"text":"abcd","meta_info":{"prompt_tokens":4,"completion_tokens":2,"finish_reason":{"type":"stop","matched":2}}})",
              "[DONE]"})},
        {"html", whole_response(502, "text/html", "<html><title>502 Bad Gateway</title></html>")},
        {"until_close",
         "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + sse_event(delta("cut"))},
        {"continue_first",
         "HTTP/1.1 100 Continue\r\n\r\n" +
             json_response(200, R"({"choices":[{"text":"x","finish_reason":"stop"}]})")},
        {"chunk_extensions",
         stream_head("text/event-stream") +
             "1b;x=y\r\ndata: {\"choices\":[{\"text\":\"q\r\n6\r\n\"}]}\n\n\r\n0;z\r\nTrailer: "
             "1\r\n\r\n"},
        {"cut_in_chunk",
         stream_head("text/event-stream") + "400\r\n" + sse_event(delta("cut")) + "data: {\"choi"},
        {"not_http", "SSH-2.0-OpenSSH_9.2\r\nmore"},
    };
}

inline std::string describe(const answer::ServerError& error) {
    std::ostringstream out;
    out << "[" << (error.status ? *error.status : -1) << "|" << error.code << "|" << error.type
        << "|" << error.text << "|" << to_string(error.where) << "]";
    return out.str();
}

/// Everything a record says but for its moments; two equal texts mean equal records.
inline std::string describe(const answer::Record& record) {
    std::ostringstream out;
    const auto fact = [&](const char* name, const auto& value) {
        out << name << "=" << (value ? std::to_string((*value).count) : std::string("-")) << " ("
            << value.how << ")\n";
    };
    out << "status=" << record.status.value_or(-1) << " version=" << record.http_version
        << " framing=" << to_string(record.framing) << "\n";
    for (const auto& [name, value] : record.headers) out << name << ": " << value << "\n";
    out << "text=" << record.text << "\nreasoning=" << record.reasoning
        << "\ntools=" << record.tool_calls << "\n";
    out << "events=" << record.text_events << " comments=" << record.comments
        << " unread=" << record.unread_events << " gaps=" << record.timeline.gaps.size()
        << " finishes=" << record.finish_events << " id=" << record.response_id
        << " model=" << record.response_model << "\n";
    out << "reason=" << record.end.reason.value_or("-") << " terminator=" << record.end.terminator
        << " transport=" << to_string(record.end.transport)
        << " error=" << (record.end.error ? describe(*record.end.error) : "-") << "\n";
    for (const auto& error : record.server_errors) out << describe(error) << "\n";
    for (const auto& [key, value] : record.stop_details) out << key << "=" << value << "\n";
    out << to_string(record.disconnect.by) << "," << to_string(record.disconnect.kind) << ","
        << record.disconnect.at_byte << "\n";
    fact("effective", record.effective_max_tokens);
    fact("prompt", record.prompt_tokens);
    fact("cached", record.cached_tokens);
    fact("output", record.output_tokens);
    fact("reasoned", record.reasoning_tokens);
    fact("counted", record.counted_tokens);
    const auto& timeline = record.timeline;
    for (const auto& moment : {timeline.headers, timeline.first_byte, timeline.first_comment,
                               timeline.first_token, timeline.first_answer, timeline.last_token,
                               timeline.finish, timeline.terminator, timeline.ended})
        out << moment.has_value();
    out << "\n" << record.capture.bytes << record.capture.truncated;
    return out.str();
}

}  // namespace fullstop::wire
