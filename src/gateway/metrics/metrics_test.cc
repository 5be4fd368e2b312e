// Which answers are counted, under which names, and that no client can fill the counters.
#include "gateway/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/test_upstream.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kChat = "/v1/chat/completions";

TEST(Gateway, OtherResponsesAreNotCountedAsAnswers) {
    Bench bench;
    bench.request(bench.get("/v1/models"));
    bench.connected();
    bench.receive(wire::whole_response(200, "application/json", R"({"data":[]})"));
    EXPECT_THAT(bench.metrics(),
                AllOf(HasSubstr("fullstop_other_responses_total{upstream=\"127.0.0.1:9000\"} 1"),
                      Not(HasSubstr("fullstop_answers_total{"))));
}

/// A stream of three pieces: the first token 101 ms after the request, the third 2 ms later.
void stream_three(Bench& bench, const std::string& model, bool whole) {
    bench.request(bench.post(kChat, R"({"stream":true})"));
    bench.connected();
    bench.now += std::chrono::milliseconds(100);
    const std::string piece = wire::chunk(wire::sse_event(
        R"({"model":")" + model +
        R"(","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]})"));
    bench.receive(kStreamHead + piece);
    bench.receive(piece);
    bench.receive(piece);
    if (!whole) return bench.close(net::CloseKind::kFin);
    bench.receive(wire::chunk(wire::sse_event(
                      R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})")) +
                  wire::chunk(wire::sse_event(
                      R"({"choices":[],"usage":{"prompt_tokens":17,"completion_tokens":3}})")) +
                  wire::chunk(wire::sse_event("[DONE]")) + "0\r\n\r\n");
}

TEST(Gateway, AnswersAreCountedInTheNamesOfOpenTelemetry) {
    Bench bench;
    stream_three(bench, "m\\\"1", true);
    bench.seen = {};
    stream_three(bench, "m\\\"1", false);
    const std::string text = bench.metrics();
    const std::string labels =
        R"(gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_response_model="m\"1")";
    for (const std::string& line : {
             "gen_ai_server_request_duration_seconds_count{" + labels + "} 1\n",
             "gen_ai_server_request_duration_seconds_count{" + labels +
                 ",error_type=\"connection_broken\"} 1\n",
             "gen_ai_server_time_to_first_token_seconds_bucket{" + labels + ",le=\"0.1\"} 0\n",
             "gen_ai_server_time_to_first_token_seconds_bucket{" + labels + ",le=\"0.25\"} 1\n",
             "gen_ai_server_time_to_first_token_seconds_count{" + labels + "} 1\n",
             "gen_ai_server_time_per_output_token_seconds_sum{" + labels + "} 0.001\n",
             "gen_ai_client_token_usage_sum{" + labels + ",gen_ai_token_type=\"input\"} 17\n",
             "gen_ai_client_token_usage_sum{" + labels + ",gen_ai_token_type=\"output\"} 3\n",
         })
        EXPECT_THAT(text, HasSubstr(line));
}

TEST(Gateway, ModelNamesFromOutsideCannotFillTheMetrics) {
    Bench bench;
    for (int i = 0; i < 100; ++i) {
        bench.seen = {};
        stream_three(bench, "m" + std::to_string(i), true);
    }
    const std::string text = bench.metrics();
    EXPECT_THAT(
        text,
        HasSubstr(
            "gen_ai_server_request_duration_seconds_count{gen_ai_response_model=\"_OTHER\"} 36\n"));
    EXPECT_THAT(text, Not(HasSubstr("m64\"")));
}

}  // namespace
}  // namespace fullstop::gateway
