// Every dialect's words end up in the record as they came, with the end facts they mean.
#include <gmock/gmock.h>

#include "wire/test_samples.h"

namespace fullstop::wire {
namespace {

using answer::Provenance;
using answer::Transport;
using testing::HasSubstr;

answer::Record sample(const std::string& name) {
    for (const auto& each : samples())
        if (each.name == name) return read_all(each.bytes);
    ADD_FAILURE() << name;
    return {};
}

TEST(OpenAi, a_whole_stream_has_text_reason_usage_and_terminator) {
    const auto record = sample("chat");
    EXPECT_EQ(record.text, "Hello, \xE4\xBD\xA0\xF0\x9F\x98\x80");
    EXPECT_EQ(record.end.reason, "stop");
    EXPECT_TRUE(record.end.terminator);
    EXPECT_EQ(record.end.transport, Transport::kClean);
    EXPECT_FALSE(record.end.error);
    EXPECT_EQ((*record.prompt_tokens).count, 40);
    EXPECT_EQ((*record.output_tokens).count, 9);
    EXPECT_EQ(record.output_tokens.from, Provenance::kReported);
    EXPECT_EQ(record.output_tokens.how, "usage.completion_tokens");
    EXPECT_EQ((*record.counted_tokens).count, 2);
    EXPECT_EQ(record.counted_tokens.from, Provenance::kMeasured);
    EXPECT_THAT(record.counted_tokens.how, HasSubstr("several tokens"));
}

TEST(OpenAi, line_ends_without_space_and_with_any_return_are_read) {
    EXPECT_EQ(sample("chat_crlf").text, "a");
    EXPECT_EQ(sample("chat_crlf").end.reason, "length");
    EXPECT_EQ(sample("chat_crlf").comments, 1);
    EXPECT_EQ(sample("chat_lone_cr").text, "a");
    EXPECT_TRUE(sample("chat_lone_cr").end.terminator);
    EXPECT_EQ(sample("chat_bom").text, "a");
    EXPECT_EQ(sample("chat_multi_line").text, "two lines");
}

TEST(OpenAi, text_and_reason_in_one_event_are_both_kept) {
    const auto record = read_all(sse_stream(
        {R"({"choices":[{"index":0,"delta":{"content":": all green."},"finish_reason":"stop"}]})",
         "[DONE]"}));
    EXPECT_EQ(record.text, ": all green.");
    EXPECT_EQ(record.end.reason, "stop");
}

TEST(OpenAi, thinking_left_in_the_content_is_moved_to_reasoning) {
    EXPECT_EQ(sample("chat_think").reasoning, "reason");
    EXPECT_EQ(sample("chat_think").text, "\n\nanswer");
    EXPECT_EQ(sample("chat_late_think_end").reasoning, "reason");
    EXPECT_EQ(sample("chat_late_think_end").text, "answer");
    EXPECT_EQ(
        read_all(sse_stream({delta("<think>never ends"), finish("length"), "[DONE]"})).reasoning,
        "never ends");
    EXPECT_EQ(read_all(sse_stream({delta("<think>never ends"), finish("length"), "[DONE]"})).text,
              "");
}

TEST(OpenAi, the_three_spellings_of_reasoning_are_read_and_a_doubled_one_counts_once) {
    for (const std::string key : {"reasoning_content", "reasoning", "thinking"})
        EXPECT_EQ(
            read_all(sse_stream({R"({"choices":[{"delta":{")" + key + R"(":"hm"}}]})"})).reasoning,
            "hm")
            << key;
    EXPECT_EQ(
        read_all(
            sse_stream({R"({"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]})"}))
            .reasoning,
        "hm");
}

TEST(OpenAi, the_first_answer_moment_is_not_that_of_reasoning) {
    answer::Record record;
    AnswerReader reader(record);
    const auto at = [&](double ms, const std::string& bytes) {
        reader.bytes(bytes, base::from_ms(ms), answer::StampClock::kKernel);
    };
    at(1, stream_head("text/event-stream"));
    at(2, chunk(": alive\n\n"));
    at(3, chunk(sse_event(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})")));
    at(5, chunk(sse_event(R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})")));
    at(8, chunk(sse_event(delta("42"))) + chunk(sse_event(delta("!"))));
    at(9, chunk(sse_event(finish("stop")) + sse_event("[DONE]")) + last_chunk());
    EXPECT_TRUE(reader.complete());
    reader.end({StreamEnd::Kind::kClosedByUs}, base::from_ms(10));
    const auto& timeline = record.timeline;
    EXPECT_EQ(timeline.headers, base::from_ms(1));
    EXPECT_EQ(timeline.first_byte, base::from_ms(2));
    EXPECT_EQ(timeline.first_comment, base::from_ms(2));
    EXPECT_EQ(timeline.first_token, base::from_ms(5));
    EXPECT_EQ(timeline.first_answer, base::from_ms(8));
    EXPECT_EQ(timeline.last_token, base::from_ms(8));
    EXPECT_EQ(timeline.finish, base::from_ms(9));
    EXPECT_EQ(timeline.terminator, base::from_ms(9));
    EXPECT_EQ(timeline.ended, base::from_ms(10));
    EXPECT_EQ(timeline.clock, answer::StampClock::kKernel);
    EXPECT_EQ(timeline.gaps, (std::vector<base::Duration>{base::from_ms(3), base::Duration{}}));
    EXPECT_EQ(record.end.transport, Transport::kClean)
        << "we closed after the response was complete";
}

TEST(OpenAi, the_word_null_and_json_null_are_no_reason) {
    EXPECT_FALSE(
        read_all(sse_stream({R"({"choices":[{"delta":{"content":"a"},"finish_reason":"null"}]})"}))
            .end.reason);
    EXPECT_FALSE(
        read_all(sse_stream({R"({"choices":[{"delta":{"content":"a"},"finish_reason":null}]})"}))
            .end.reason);
    EXPECT_FALSE(read_all(sse_stream({R"({"choices":[{"delta":{"content":"a"}}]})"})).end.reason);
}

TEST(OpenAi, choices_absent_null_or_empty_do_not_hide_the_usage) {
    for (const std::string choices : {R"("choices":[],)", R"("choices":null,)", ""})
        EXPECT_EQ(
            (*read_all(sse_stream({"{" + choices +
                                   R"("usage":{"prompt_tokens":6,"completion_tokens":161}})"}))
                  .output_tokens)
                .count,
            161);
    EXPECT_FALSE(read_all(sse_stream({R"({"choices":[{"delta":{"content":"a"}}],"usage":null})"}))
                     .output_tokens);
}

TEST(OpenAi, usage_details_give_cached_and_reasoning_tokens) {
    const auto record = read_all(sse_stream(
        {R"({"choices":[],"usage":{"prompt_tokens":6,"completion_tokens":1500,"prompt_tokens_details":{"cached_tokens":4},)"
         R"("completion_tokens_details":{"reasoning_tokens":1499}}})"}));
    EXPECT_EQ((*record.cached_tokens).count, 4);
    EXPECT_EQ((*record.reasoning_tokens).count, 1499);
}

TEST(OpenAi, two_finish_events_are_counted_and_each_choice_has_its_own) {
    EXPECT_EQ(read_all(sse_stream({delta("end"), finish("stop"), finish("stop"), "[DONE]"}))
                  .finish_events,
              2);
    const auto record = sample("chat_two_choices");
    EXPECT_EQ(record.text, "ABb");
    EXPECT_EQ(record.finish_events, 1);
    EXPECT_EQ(record.stop_details.at("finish_reason[0]"), "null");
    EXPECT_EQ(record.stop_details.at("finish_reason[1]"), "stop");
}

TEST(OpenAi, tool_call_arguments_are_joined) {
    const auto record = sample("tool_call");
    EXPECT_EQ(record.tool_calls, "f{\"a\": 1}");
    EXPECT_EQ(record.end.reason, "tool_calls");
    EXPECT_EQ(record.text_events, 2);
}

TEST(OpenAi, terminal_fields_of_vllm_sglang_and_tabby_are_kept_verbatim) {
    const auto ending = [](const std::string& extra) {
        return read_all(sse_stream({R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop",)" +
                                    extra + "}]}"}))
            .stop_details;
    };
    EXPECT_EQ(ending(R"("stop_reason":"\n\nUser:")").at("stop_reason"), "\n\nUser:");
    EXPECT_EQ(ending(R"("stop_reason":128009)").at("stop_reason"), "128009");
    EXPECT_FALSE(ending(R"("stop_reason":null)").contains("stop_reason"));
    EXPECT_EQ(ending(R"("matched_stop":151645)").at("matched_stop"), "151645");
    EXPECT_EQ(ending(R"("eos_reason":"loop_detected","stop_str":"")").at("eos_reason"),
              "loop_detected");
    EXPECT_FALSE(ending(R"("eos_reason":"stop_token","stop_str":"")").contains("stop_str"));
}

TEST(OpenAi, an_abort_with_200_and_done_keeps_its_word) {
    const auto record = read_all(sse_stream(
        {delta(" and then"),
         R"({"choices":[{"index":0,"delta":{"content":""},"finish_reason":"abort"}]})", "[DONE]"}));
    EXPECT_EQ(record.end.reason, "abort");
    EXPECT_TRUE(record.end.terminator);
}

TEST(OpenAi, llama_servers_timings_give_tokens_without_usage) {
    const auto record = read_all(sse_stream(
        {delta("a"),
         R"({"choices":[],"timings":{"cache_n":3,"prompt_n":52,"prompt_ms":118.8,"predicted_n":400,"predicted_per_token_ms":38.3}})"}));
    EXPECT_EQ((*record.prompt_tokens).count, 55);
    EXPECT_EQ(record.prompt_tokens.from, Provenance::kDerived);
    EXPECT_EQ((*record.cached_tokens).count, 3);
    EXPECT_EQ((*record.output_tokens).count, 400);
    EXPECT_DOUBLE_EQ(*record.prompt_ms, 118.8);
}

TEST(OpenAi, queue_time_is_what_ttft_holds_beyond_prefill_and_one_token) {
    answer::Record record;
    record.timeline.sent = base::from_ms(0);
    AnswerReader reader(record);
    reader.bytes(stream_head("text/event-stream") + chunk(sse_event(delta("a"))),
                 base::from_ms(500), answer::StampClock::kKernel);
    reader.bytes(
        chunk(sse_event(
            R"({"choices":[],"timings":{"prompt_n":5,"prompt_ms":100,"predicted_n":1,"predicted_per_token_ms":40}})")),
        base::from_ms(600), answer::StampClock::kKernel);
    reader.end({}, base::from_ms(601));
    EXPECT_DOUBLE_EQ(*record.queue_ms, 360);
    EXPECT_EQ(record.queue_ms.from, Provenance::kDerived);
}

TEST(OpenAi, vllm_request_metrics_report_the_queue) {
    const auto record = read_all(sse_stream(
        {R"({"choices":[],"usage":{"completion_tokens":1},"metrics":{"queue_time_ms":12.5}})"}));
    EXPECT_DOUBLE_EQ(*record.queue_ms, 12.5);
    EXPECT_EQ(record.queue_ms.how, "metrics.queue_time_ms");
}

TEST(OpenAi, the_fullstop_object_fills_the_numbers_of_the_method) {
    const auto record = read_all(sse_stream(
        {delta("a"),
         R"({"choices":[{"delta":{},"finish_reason":"length"}],"fullstop":{"request_id":"r","stop":{"cause":"token_limit","by":"engine","detail":"limit 64"},)"
         R"("requested_max_tokens":512,"effective_max_tokens":64,"prompt_tokens":7,"cached_tokens":2,"output_tokens":64,"queue_ms":3.5,"paused_ms":250,)"
         R"("preemptions":{"swap":1,"recompute":2},"kv_bytes_peak":4096,"deadline_ms":null}})"}));
    EXPECT_EQ(record.fullstop_cause, "token_limit");
    EXPECT_EQ(record.stop_details.at("fullstop.stop.by"), "engine");
    EXPECT_EQ((*record.effective_max_tokens).count, 64);
    EXPECT_EQ((*record.output_tokens).count, 64);
    EXPECT_DOUBLE_EQ(*record.queue_ms, 3.5);
    EXPECT_DOUBLE_EQ(*record.paused_ms, 250);
    EXPECT_EQ(*record.preemptions, 3);
    EXPECT_EQ((*record.kv_bytes).count, 4096);
    EXPECT_FALSE(record.server_deadline_ms);
}

TEST(OpenAi, a_fullstop_object_inside_an_error_is_read) {
    const auto record = read_all(sse_stream(
        {delta("a"),
         R"({"error":{"message":"m","type":"t","code":"deadline","fullstop":{"stop":{"cause":"gateway_deadline"},"output_tokens":1}}})"}));
    EXPECT_EQ(record.fullstop_cause, "gateway_deadline");
    EXPECT_EQ(record.deadline_fired, answer::DeadlineFired::kGateway);
    EXPECT_EQ(record.end.error->code, "deadline");
    EXPECT_EQ((*record.output_tokens).count, 1);
}

TEST(OpenAi, numbers_in_headers_are_facts) {
    const std::string head =
        stream_head("text/event-stream", {{"Fullstop-Effective-Max-Tokens", "64"},
                                          {"Fullstop-Deadline-Ms", "15000"},
                                          {"Fullstop-Queue-Ms", "12"}});
    const auto record = read_all(head + chunk(sse_event(delta("a"))) + last_chunk());
    EXPECT_EQ((*record.effective_max_tokens).count, 64);
    EXPECT_DOUBLE_EQ(*record.gateway_deadline_ms, 15000);
    EXPECT_DOUBLE_EQ(*record.queue_ms, 12);
    EXPECT_EQ(record.headers.at("fullstop-deadline-ms"), "15000");
}

TEST(OpenAi, a_body_that_does_not_stream_is_whole_only_if_its_framing_agrees) {
    const auto record = sample("chat_body");
    EXPECT_EQ(record.text, "whole");
    EXPECT_TRUE(record.end.terminator);
    EXPECT_FALSE(record.counted_tokens);
    EXPECT_FALSE(record.timeline.first_token);
    EXPECT_EQ(sample("pretty_body").text, "whole");
    EXPECT_TRUE(sample("pretty_body").end.terminator);
    std::string lie =
        json_response(200, R"({"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]})");
    lie.replace(lie.find("Content-Length: ") + 16, 2, "99");
    EXPECT_EQ(read_all(lie).end.transport, Transport::kTruncated);
    EXPECT_FALSE(read_all(lie).end.terminator);
}

TEST(OpenAi, half_surrogates_of_two_events_are_one_character) {
    EXPECT_EQ(read_all(sse_stream({delta("\\ud83d"), delta("\\ude00")})).text, "\xF0\x9F\x98\x80");
}

TEST(OpenAi, bytes_that_are_no_utf8_stay_in_the_text) {
    EXPECT_EQ(read_all(sse_stream({delta("a\xFF\xE4\xBD"), delta("b")})).text,
              "a\xFF\xE4\xBD"
              "b");
}

TEST(OpenAi, python_s_nan_does_not_lose_an_event) {
    EXPECT_EQ(
        read_all(
            sse_stream(
                {R"({"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"logprob":-Infinity}]},"score":NaN}]})"}))
            .text,
        "a");
}

TEST(LlamaServer, the_native_end_says_why_and_gives_the_limit) {
    const auto record = sample("llama_server");
    EXPECT_EQ(record.text, "a");
    EXPECT_EQ(record.end.reason, "word");
    EXPECT_TRUE(record.end.terminator);
    EXPECT_EQ(record.stop_details.at("stopping_word"), "END");
    EXPECT_EQ(record.stop_details.at("truncated"), "false");
    EXPECT_EQ(record.stop_details.at("generation_settings.seed"), "7");
    EXPECT_EQ((*record.effective_max_tokens).count, 64);
    EXPECT_EQ((*record.prompt_tokens).count, 5);
    EXPECT_EQ((*record.output_tokens).count, 2);
}

TEST(LlamaServer, older_builds_say_it_with_flags) {
    const auto record = read_all(sse_stream(
        {R"({"content":"a","stop":false})",
         R"({"content":"","stop":true,"stopped_eos":false,"stopped_limit":true,"stopped_word":false,"truncated":true})"}));
    EXPECT_EQ(record.end.reason, "stopped_limit");
    EXPECT_EQ(record.stop_details.at("truncated"), "true");
    EXPECT_TRUE(record.end.terminator);
}

TEST(LlamaServer, no_limit_is_said_not_counted) {
    const auto record = read_all(json_response(
        200,
        R"({"content":"a","stop":true,"stop_type":"eos","generation_settings":{"n_predict":-1}})"));
    EXPECT_FALSE(record.effective_max_tokens);
    EXPECT_THAT(record.effective_max_tokens.how, HasSubstr("no limit"));
}

TEST(Ollama, the_last_line_gives_reason_counts_and_the_queue) {
    const auto record = sample("ollama");
    EXPECT_EQ(record.text, "Hello");
    EXPECT_EQ(record.end.reason, "stop");
    EXPECT_TRUE(record.end.terminator);
    EXPECT_EQ((*record.prompt_tokens).count, 11);
    EXPECT_EQ((*record.output_tokens).count, 2);
    EXPECT_DOUBLE_EQ(*record.prompt_ms, 200);
    EXPECT_DOUBLE_EQ(*record.queue_ms, 200);
    EXPECT_EQ(record.queue_ms.from, Provenance::kDerived);
}

TEST(Ollama, an_error_line_is_an_error_and_no_terminator) {
    const auto record = sample("ollama_error");
    EXPECT_EQ(record.text, "so");
    EXPECT_EQ(record.end.error->text, "unexpected EOF");
    EXPECT_EQ(record.end.error->where, answer::ErrorPlace::kStream);
    EXPECT_FALSE(record.end.terminator);
    EXPECT_FALSE(
        read_all(chunked_stream({"{\"error\":\"x\"}\n"}, "application/x-ndjson")).end.terminator)
        << "an error line alone is no whole answer either";
}

TEST(Ollama, a_line_that_broke_off_is_unread_and_ends_nothing) {
    const std::string head = stream_head("application/x-ndjson");
    const auto record =
        read_all(head + chunk("{\"model\":\"m\",\"response\":\"so\",\"done\":false}\n") +
                 "40\r\n{\"model\":\"m\",\"response\":\"\",\"done\":tr");
    EXPECT_EQ(record.text, "so");
    EXPECT_EQ(record.unread_events, 1);
    EXPECT_FALSE(record.end.terminator);
    EXPECT_EQ(record.end.transport, Transport::kTruncated);
}

TEST(Ollama, load_and_unload_are_reasons_of_their_own) {
    const auto record = read_all(json_response(
        200,
        R"({"model":"m","message":{"role":"assistant","content":""},"done_reason":"load","done":true})"));
    EXPECT_EQ(record.end.reason, "load");
    EXPECT_EQ(record.text_events, 0);
    EXPECT_FALSE(record.output_tokens);
}

TEST(Ollama, thinking_and_tool_calls_are_kept_apart_from_the_answer) {
    const auto record = read_all(
        chunked_stream({"{\"message\":{\"content\":\"\",\"thinking\":\"hm\"},\"done\":false}\n",
                        "{\"message\":{\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":"
                        "\"f\",\"arguments\":{\"a\":1}}}]},\"done\":false}\n"}));
    EXPECT_EQ(record.reasoning, "hm");
    EXPECT_EQ(record.tool_calls, "f{\"a\":1}");
}

TEST(KoboldCpp, its_last_event_ends_the_stream) {
    const auto record = sample("koboldcpp");
    EXPECT_EQ(record.text, "a");
    EXPECT_EQ(record.end.reason, "length");
    EXPECT_TRUE(record.end.terminator);
    EXPECT_EQ(
        read_all(
            json_response(
                200,
                R"({"results":[{"text":"x","finish_reason":"stop","prompt_tokens":3,"completion_tokens":1}]})"))
            .text,
        "x");
    EXPECT_EQ(read_all(json_response(200, R"({"results":[]})")).unread_events, 1);
}

TEST(Tgi, generated_text_ends_the_stream_and_is_not_counted_twice) {
    const auto record = sample("tgi");
    EXPECT_EQ(record.text, "Hi");
    EXPECT_EQ(record.end.reason, "eos_token");
    EXPECT_TRUE(record.end.terminator);
    EXPECT_EQ((*record.output_tokens).count, 2);
    const auto whole = read_all(whole_response(
        200, "application/json",
        R"([{"generated_text":"Hi","details":{"finish_reason":"length","generated_tokens":100}}])",
        {{"x-queue-time", "17"}, {"x-prompt-tokens", "4"}}));
    EXPECT_EQ(whole.text, "Hi");
    EXPECT_DOUBLE_EQ(*whole.queue_ms, 17);
    EXPECT_EQ((*whole.prompt_tokens).count, 4);
}

TEST(Tgi, an_error_event_has_its_type) {
    const auto record =
        read_all(sse_stream({R"({"error":"Model is overloaded","error_type":"overloaded"})"}));
    EXPECT_EQ(record.end.error->text, "Model is overloaded");
    EXPECT_EQ(record.end.error->type, "overloaded");
    EXPECT_FALSE(record.end.terminator);
}

TEST(SgLang, repeated_text_counts_once) {
    const auto record = sample("sglang");
    EXPECT_EQ(record.text, "abcd");
    EXPECT_EQ(record.text_events, 2);
    EXPECT_EQ(record.end.reason, "stop");
    EXPECT_EQ(record.stop_details.at("matched_stop"), "2");
}

}  // namespace
}  // namespace fullstop::wire
