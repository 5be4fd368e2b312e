// Bytes of any kind give a record, never a crash: random ones, real answers cut at each byte, real
// answers damaged.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/random.h"
#include "wire/captures/capture.h"
#include "wire/test_samples.h"

namespace fullstop::wire {
namespace {

using Input = AnswerReader::Input;

/// What holds for every record, whatever the bytes were.
void expect_sane(const answer::Record& record) {
    if (record.timeline.last_token)
        EXPECT_EQ(record.timeline.gaps.size() + 1, static_cast<std::size_t>(record.text_events));
    EXPECT_EQ(record.end.error.has_value(), !record.server_errors.empty());
    if (record.text_events == 0) EXPECT_EQ(record.text + record.reasoning + record.tool_calls, "");
    if (record.counted_tokens) EXPECT_EQ((*record.counted_tokens).count, record.text_events);
}

TEST(Garbage, random_bytes_are_read_without_harm) {
    EXPECT_TRUE(rc::check([](const std::string& bytes, bool body) {
        const auto record = read_all(bytes, body ? Input::kBody : Input::kHttp);
        expect_sane(record);
        RC_ASSERT(record.capture.bytes == bytes);
    }));
}

TEST(Garbage, random_bytes_behind_a_good_head_are_read_without_harm) {
    EXPECT_TRUE(rc::check([](const std::string& bytes) {
        for (const auto* type : {"text/event-stream", "application/json", "application/x-ndjson"})
            expect_sane(read_all(stream_head(type) + chunk(bytes) + last_chunk()));
        expect_sane(read_all("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + bytes));
    }));
}

TEST(Garbage, every_prefix_of_every_sample_is_an_answer_that_broke_off) {
    for (const Sample& sample : samples())
        for (std::size_t length = 0; length < sample.bytes.size(); ++length) {
            const auto record = read_all(std::string_view(sample.bytes).substr(0, length));
            expect_sane(record);
            if (record.framing == answer::Framing::kChunked)
                EXPECT_NE(record.end.transport, answer::Transport::kClean)
                    << sample.name << " " << length;
        }
}

TEST(Garbage, every_prefix_of_real_answers_is_cut_and_its_text_only_grows) {
    for (const auto* name :
         {"ollama_native_runnerkill9_n1_0.raw", "nginx_18187_uvicorn_ok_n1_0.raw",
          "ollama_v1_runnerkill9_n1_0.raw", "litellm_fake_close10_n1_0.raw",
          "direct_nostream_n8_0.raw", "litellm_nostream_timeout3_n1_0.raw"}) {
        const std::string bytes = golden(name);
        std::size_t text = 0;
        for (std::size_t length = 0; length < bytes.size(); ++length) {
            const auto record = read_all(std::string_view(bytes).substr(0, length));
            ASSERT_EQ(record.end.transport, answer::Transport::kTruncated) << name << " " << length;
            ASSERT_GE(record.text.size(), text) << name << " " << length;
            text = record.text.size();
        }
    }
}

TEST(Garbage, the_ends_of_long_real_answers_may_be_cut_anywhere) {
    for (const auto* name : {"direct_stream_n8_0.raw", "envoy_default15s_rerun_n8_0.raw",
                             "ollama_v1_ctx1024_n1_0.raw", "litellm_stream_n8_0.raw"}) {
        const std::string bytes = golden(name);
        for (std::size_t length = 0; length < bytes.size();
             length += length < 1500 || length + 1000 > bytes.size() ? 1 : 997)
            expect_sane(read_all(std::string_view(bytes).substr(0, length), Input::kHttp,
                                 StreamEnd::Kind::kRst));
    }
}

TEST(Garbage, every_prefix_of_a_capture_file_is_read_or_refused_in_words) {
    const std::string bytes = golden("vllm-cpu-bf16-n1_0.jsonl");
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        const auto records = read_capture(std::string_view(bytes).substr(0, length));
        if (records)
            EXPECT_EQ(records->size(), 1U);
        else
            EXPECT_FALSE(records.error().message.empty());
    }
}

TEST(Garbage, damaged_real_answers_are_read_without_harm) {
    base::Random random(20261130);
    for (const auto* name : {"direct_stream_n8_0.raw", "ollama_native_runnerkill9_n1_0.raw",
                             "litellm_fake_close10_n1_0.raw"}) {
        const std::string good = golden(name);
        for (int round = 0; round < 200; ++round) {
            std::string bytes = good;
            for (int i = 0; i < 5; ++i)
                bytes[random.below(bytes.size())] = static_cast<char>(random.next());
            if (random.chance(0.3)) bytes.erase(random.below(bytes.size()), random.below(40));
            expect_sane(read_all(bytes));
            expect_sane(read_response(bytes));
            (void)read_capture(bytes);
        }
    }
}

TEST(Garbage, deep_nesting_is_passed_over) {
    const std::string deep = std::string(100000, '[') + std::string(100000, ']');
    EXPECT_EQ(read_all(sse_stream({R"({"choices":[{"delta":{"content":"a"},"x":)" + deep + "}]}",
                                   delta("b")}))
                  .text.back(),
              'b');
}

}  // namespace
}  // namespace fullstop::wire
