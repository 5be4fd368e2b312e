// What a client of `fullstop serve` sees, byte by byte: honest ends look like ends, everything else
// does not.
#include "engine/http/http_service.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <map>
#include <vector>

#include "base/utf8.h"
#include "engine/test_host.h"

namespace fullstop::engine {
namespace {

namespace json = boost::json;
using answer::Cause;
using net::ConnectionId;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

TEST(HttpService, AStreamEndsWithReasonUsageFactsAndTerminator) {
    Host host;
    host.backend.answers["user:hi\n"] = "Grüße, 世界";
    const auto id =
        host.chat(R"("stream":true,"stream_options":{"include_usage":true},"max_tokens":40)");
    host.run();
    const auto record = host.read(id);
    EXPECT_EQ(record.text, "Grüße, 世界");
    EXPECT_EQ(record.end.reason, "stop");
    EXPECT_TRUE(record.end.terminator);
    EXPECT_EQ(record.end.transport, answer::Transport::kClean);
    EXPECT_EQ(record.fullstop_cause, "natural_end");
    EXPECT_EQ(record.prompt_tokens.value, base::Tokens{8});
    EXPECT_EQ(record.output_tokens.value, base::Tokens{15}) << "the test model's tokens are bytes";
    EXPECT_EQ(record.effective_max_tokens.value, base::Tokens{40});
    EXPECT_EQ(record.kv_bytes.value, base::Bytes{10 * 23});
    EXPECT_EQ(record.preemptions.value, 0);
    EXPECT_TRUE(record.queue_ms.value.has_value());
    EXPECT_EQ(record.unread_events, 0);
    EXPECT_EQ(record.finish_events, 1);
    EXPECT_TRUE(host.clients[id].keep_alive);
    const std::string& bytes = host.clients[id].bytes;
    EXPECT_LT(bytes.find(R"("fullstop":)"), bytes.find("[DONE]"))
        << "the last event carries the facts";
    EXPECT_LT(bytes.find(R"("usage":)"), bytes.find(R"("fullstop":)"));
}

TEST(HttpService, WithoutUsageTheFinishEventCarriesTheFacts) {
    Host host;
    const auto id = host.chat(R"("stream":true)");
    host.run();
    EXPECT_EQ(host.read(id).fullstop_cause, "natural_end");
    EXPECT_THAT(host.clients[id].bytes, Not(HasSubstr("\"usage\"")));
}

TEST(HttpService, AWholeBodySaysTheSame) {
    Host host;
    host.backend.answers["user:hi\n"] = "hello";
    const auto id = host.chat("");
    host.run();
    const auto body = host.json_of(id);
    EXPECT_EQ(body.at("object"), "chat.completion");
    EXPECT_EQ(body.at("created"), 1'800'000'000);
    EXPECT_EQ(body.at("choices").at(0).at("message").at("content"), "hello");
    EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "stop");
    EXPECT_EQ(body.at("usage").at("completion_tokens"), 5);
    const auto& facts = body.at("fullstop");
    EXPECT_EQ(facts.at("stop").at("cause"), "natural_end");
    EXPECT_EQ(facts.at("stop").at("by"), "engine");
    EXPECT_TRUE(facts.at("requested_max_tokens").is_null());
    EXPECT_EQ(facts.at("effective_max_tokens"), 120);
    for (const char* key :
         {"request_id", "prompt_tokens", "cached_tokens", "output_tokens", "queue_ms", "ttft_ms",
          "paused_ms", "preemptions", "kv_bytes_peak", "deadline_ms", "slo"})
        EXPECT_TRUE(facts.as_object().contains(key)) << key;
}

TEST(HttpService, TextCompletionsHaveTheirOwnShape) {
    Host host;
    host.backend.answers["once\n"] = "upon";
    const auto whole = host.send("POST", "/v1/completions",
                                 R"({"prompt":"once\n","temperature":0,"max_tokens":3})");
    const auto streamed = host.send("POST", "/v1/completions",
                                    R"({"prompt":["once\n"],"temperature":0,"stream":true})");
    host.run();
    EXPECT_EQ(host.json_of(whole).at("object"), "text_completion");
    EXPECT_EQ(host.json_of(whole).at("choices").at(0).at("text"), "upo");
    EXPECT_EQ(host.json_of(whole).at("choices").at(0).at("finish_reason"), "length");
    EXPECT_EQ(host.read(streamed).text, "upon");
}

TEST(HttpService, LengthIsSaidForLimitsOnlyAndTheCauseTellsWhich) {
    Host host(TestBackend{base::Tokens{32}});
    host.backend.answers["user:hi\n"] = std::string(100, 'x');
    const auto asked = host.chat(R"("stream":true,"max_tokens":5)"),
               window = host.chat(R"("stream":true)");
    host.run();
    EXPECT_EQ(host.read(asked).end.reason, "length");
    EXPECT_EQ(host.read(asked).fullstop_cause, "token_limit");
    EXPECT_EQ(host.read(window).end.reason, "length");
    EXPECT_EQ(host.read(window).fullstop_cause, "context_limit");
    EXPECT_EQ(host.read(window).text.size(), 24U);
}

TEST(HttpService, AStopStringIsAStopAndIsNotShown) {
    Host host;
    host.backend.answers["user:hi\n"] = "one.two";
    const auto id = host.chat(R"("stream":true,"stop":".")");
    host.run();
    EXPECT_EQ(host.read(id).text, "one");
    EXPECT_EQ(host.read(id).end.reason, "stop");
    EXPECT_EQ(host.read(id).fullstop_cause, "stop_string");
}

TEST(HttpService, ABrokenAnswerNeverLooksFinished) {
    Host host;
    host.backend.answers["user:hi\n"] = std::string(50, 'x');
    const auto streamed = host.chat(R"("stream":true)"), whole = host.chat("");
    for (int i = 0; i < 5; ++i) host.step();
    host.backend.next_status = DecodeStatus::kFatal;
    host.run();
    const auto record = host.read(streamed);
    EXPECT_EQ(record.text, "xxxxx");
    EXPECT_EQ(record.end.reason, std::nullopt);
    EXPECT_FALSE(record.end.terminator);
    EXPECT_EQ(record.end.transport, answer::Transport::kTruncated) << "no last chunk";
    ASSERT_TRUE(record.end.error.has_value());
    EXPECT_EQ(record.end.error->code, "server_error");
    EXPECT_EQ(record.fullstop_cause, "server_error");
    EXPECT_FALSE(host.clients[streamed].keep_alive);
    EXPECT_EQ(host.read(whole).status, 500);
    EXPECT_EQ(host.json_of(whole).at("error").at("fullstop").at("output_tokens"), 5);
}

TEST(HttpService, AFullQueueIsA503WithAnEstimate) {
    Host host(TestBackend{base::Tokens{64}, 1}, 1);
    for (int i = 0; i < 2; ++i) host.chat(R"("stream":true)");
    const auto refused = host.chat(R"("stream":true)");
    host.run();
    const auto record = host.read(refused);
    EXPECT_EQ(record.status, 503);
    EXPECT_GE(std::stoi(record.headers.at("retry-after")), 1);
    const auto error = host.json_of(refused).at("error");
    EXPECT_EQ(error.at("code"), "queue_full");
    EXPECT_EQ(error.at("fullstop").at("stop").at("cause"), "admission_rejected");
    EXPECT_TRUE(host.clients[refused].keep_alive) << "an honest refusal keeps the connection";
}

TEST(HttpService, WhatCannotFitIsA400WithTheNumbers) {
    Host host(TestBackend{base::Tokens{32}});
    const auto id = host.chat(R"("max_tokens":30)");
    host.run();
    EXPECT_EQ(host.read(id).status, 400);
    const auto error = host.json_of(id).at("error");
    EXPECT_EQ(error.at("code"), "context_length_exceeded");
    EXPECT_THAT(std::string(error.at("message").as_string()),
                HasSubstr("need 38 tokens and the window holds 32: ask for at most 24"));
}

TEST(HttpService, WhatARequestMakesThrowEndsThatRequestAlone) {
    Host host;
    const auto running = host.chat(R"("stream":true)");
    host.step();
    host.backend.throws = true;
    const auto bad = host.chat(R"("stream":true)"),
               shown = host.send("POST", "/apply-template",
                                 R"({"messages":[{"role":"user","content":"hi"}]})");
    host.step();
    host.backend.throws = false;
    const auto after = host.chat("");
    host.run();
    EXPECT_EQ(host.read(bad).status, 500);
    EXPECT_THAT(host.body(bad), HasSubstr("a fault of this server: planted"));
    EXPECT_EQ(host.read(shown).status, 400);
    for (const auto id : {running, after}) EXPECT_EQ(host.read(id).fullstop_cause, "natural_end");
    EXPECT_EQ(host.service.open_answers(), 0U);
}

TEST(HttpService, APathHasOneFormHoweverItIsSpelled) {
    Host host;
    for (const char* target :
         {"/health/", "//health", "/h%65alth", "/health;x", "http://h/health", "/./health?q"})
        EXPECT_EQ(host.read(host.send("GET", target)).status, 200) << target;
    EXPECT_EQ(host.read(host.send("GET", "/h%2565alth")).status, 400);
}

TEST(HttpService, AnErrorRepeatsLittleOfWhatWasSentAndIsAlwaysUtf8) {
    Host host;
    const std::string euros = [] {
        std::string all;
        for (int i = 0; i < 100'000; ++i) all += "\u20ac";
        return all;
    }();
    for (const auto& id :
         {host.send("GET", "/v1/\xFF\xFE" + euros), host.chat("\"" + euros + "\":1"),
          host.chat("\"model\":\"" + euros + "\"")}) {
        host.run();
        const std::string body = host.body(id);
        EXPECT_GE(host.read(id).status, 400);
        EXPECT_LT(body.size(), 3000U);
        EXPECT_FALSE(base::first_invalid_byte(body)) << body;
        EXPECT_NO_THROW(json::parse(body));
    }
}

TEST(HttpService, ALimitBeyondEveryWindowIsRefusedWithTheNumbersAndEndsNothing) {
    Host host;
    for (const char* huge : {"9223372036854775807", "9223372036854775800", "18446744073709551615",
                             "9007199254740993", "1e30", "1e308"}) {
        const auto id = host.chat(fmt::format(R"("max_tokens":{})", huge));
        host.run();
        EXPECT_EQ(host.read(id).status, 400) << huge;
        EXPECT_THAT(host.body(id), HasSubstr("ask for at most")) << huge;
    }
    const auto after = host.chat(R"("max_tokens":3)");
    host.run();
    EXPECT_EQ(host.read(after).status, 200);
}

TEST(HttpService, APromptThatWasNotReadHasNoNumberOfTokensButALeast) {
    TestBackend backend(base::Tokens{32});
    backend.unread_from = 1000;
    Host host(std::move(backend));
    const auto id = host.chat("", std::string(2000, '<'));
    host.run();
    EXPECT_EQ(host.read(id).status, 400);
    const auto error = host.json_of(id).at("error");
    EXPECT_EQ(error.at("code"), "context_length_exceeded");
    EXPECT_THAT(std::string(error.at("message").as_string()),
                HasSubstr("at least 1003 tokens and the window holds 32"));
    EXPECT_TRUE(error.at("fullstop").at("prompt_tokens").is_null());
}

TEST(HttpService, ThePromptOfAConversationIsShownAndNothingComputed) {
    Host host;
    const auto id = host.send(
        "POST", "/apply-template",
        R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"It is"}]})");
    EXPECT_EQ(host.service.open_answers(), 1U);
    host.run();
    EXPECT_EQ(host.json_of(id), boost::json::parse(R"({"prompt":"user:hi\nassistant:It is\n"})"));
    EXPECT_TRUE(host.clients[id].closed && host.clients[id].keep_alive);
    EXPECT_EQ(host.service.open_answers(), 0U);
    EXPECT_TRUE(host.backend.rows_of_steps.empty());
    const auto refused = host.send("POST", "/apply-template",
                                   R"({"messages":[{"role":"system","content":"refuse"}]})");
    host.run();
    EXPECT_EQ(host.read(refused).status, 400);
    EXPECT_EQ(host.json_of(refused).at("error").at("message"), "no system here: leave it out");
    EXPECT_EQ(host.read(host.send("GET", "/apply-template")).status, 405);
    EXPECT_EQ(host.read(host.send("POST", "/apply-template", "{}")).status, 400);
    net::ServiceActions out;
    const auto gone =
        host.send("POST", "/apply-template", R"({"messages":[{"role":"user","content":"hi"}]})");
    host.service.client_left(host.now, gone, out);
    host.run();
    EXPECT_EQ(host.clients[gone].bytes, "");
}

TEST(HttpService, AConversationOfMoreMessagesThanTheWindowHasTokensIsNotTried) {
    Host host(TestBackend{base::Tokens{32}});
    std::string body = R"({"messages":[)";
    for (int i = 0; i < 32; ++i)
        body += std::string(i == 0 ? "" : ",") + R"({"role":"user","content":""})";
    for (const char* path : {"/v1/chat/completions", "/apply-template"}) {
        const auto id = host.send("POST", path, body + "]}");
        host.run();
        EXPECT_EQ(host.read(id).status, 400);
        EXPECT_THAT(
            host.body(id),
            HasSubstr("32 messages, each of at least one token, and the window holds 32 tokens"));
    }
}

TEST(HttpService, EveryParameterThatIsNotHonouredIsNamed) {
    Host host;
    const std::map<std::string, std::string> wrong = {
        {R"("n":2)", "n (only 1 is)"},
        {R"("tools":[{"type":"function"}],"echo":true)",
         "tools (only [] is), echo (only false is)"},
        {R"("frequency_penalty":2.5)", "frequency_penalty is a number from -2 to 2"},
        {R"("presence_penalty":"much")", "presence_penalty is a number"},
        {R"("logit_bias":[1])", "logit_bias is an object"},
        {R"("logit_bias":{"x":1})", "logit_bias names tokens by their numbers, not \"x\""},
        {R"("logit_bias":{"-1":1})", "logit_bias names tokens"},
        {R"("logit_bias":{"5":101})", "logit_bias[5] is a number from -100 to 100"},
        {R"("logit_bias":{"257":1})", "logit_bias[257]: the model has 257 tokens"},
        {R"("response_format":{"type":"json_schema","json_schema":{}})",
         "response_format.json_schema.schema is missing"},
        {R"("grammar":"root ::= \"a\"")", "grammar"},
        {R"("colour":"red")", "colour"},
        {R"("prompt":"x")", "prompt"},
        {R"("stream_options":{"continuous_usage_stats":true})",
         "stream_options.continuous_usage_stats"},
        {R"("stream_options":{"include_usage":true})", "stream_options is for streams"},
        {R"("max_tokens":0)", "max_tokens is a whole number of at least 1"},
        {R"("max_tokens":"many")", "max_tokens"},
        {R"("max_tokens":5,"max_completion_tokens":6)", "max_completion_tokens contradicts"},
        {R"("top_p":0)", "top_p"},
        {R"("temperature":-1)", "temperature"},
        {R"("stop":[""])", "stop"},
        {R"("stream":"yes")", "stream is true or false"},
        {R"("messages":[])", "messages"},
        {R"("messages":[{"role":"robot","content":"x"}])", "messages[0].role"},
        {R"("messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}])",
         "messages[0].content"},
        {R"("messages":[{"role":"user","content":"x","name":"me"}])", "messages[0].name"},
    };
    for (const auto& [member, named] : wrong) {
        const bool own = std::string_view(member).starts_with("\"messages\"");
        const auto id = host.send(
            "POST", "/v1/chat/completions",
            own ? fmt::format("{{{}}}", member)
                : fmt::format(R"({{"messages":[{{"role":"user","content":"x"}}],{}}})", member));
        ASSERT_TRUE(host.clients[id].closed) << member;
        EXPECT_EQ(host.read(id).status, 400) << member;
        EXPECT_THAT(std::string(host.json_of(id).at("error").at("message").as_string()),
                    HasSubstr(named))
            << member;
    }
    EXPECT_TRUE(host.commands.empty());
}

TEST(HttpService, ValuesThatChangeNothingAndNullsAreAccepted) {
    Host host;
    const auto id = host.chat(
        R"("n":1,"logprobs":false,"frequency_penalty":0.0,"response_format":{"type":"text"},"stop":null,"user":"me","max_tokens":null,"top_k":-1,"seed":-3)");
    const auto parts = host.send(
        "POST", "/v1/chat/completions",
        R"({"messages":[{"role":"user","content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}]})");
    host.run();
    EXPECT_EQ(host.read(id).status, 200) << host.body(id);
    EXPECT_EQ(host.read(parts).text, host.backend.answer_to("user:h\ni\n"));
}

TEST(HttpService, ABodyThatIsNotARequestIsA400) {
    Host host;
    for (const std::string body : {"", "{", "[]", "{} x", "nonsense", "{\"messages\":null}"}) {
        const auto id = host.send("POST", "/v1/chat/completions", body);
        EXPECT_EQ(host.read(id).status, 400) << body;
    }
    const auto deep =
        host.send("POST", "/v1/chat/completions",
                  "{\"messages\":" + std::string(10'000, '[') + std::string(10'000, ']') + "}");
    EXPECT_EQ(host.read(deep).status, 400);
}

TEST(HttpService, WrongPathsMethodsAndModelsAreNamed) {
    Host host;
    EXPECT_EQ(host.read(host.send("GET", "/v1/embeddings")).status, 404);
    EXPECT_EQ(host.read(host.send("GET", "/v1/chat/completions")).status, 405);
    EXPECT_EQ(host.read(host.send("POST", "/metrics")).status, 405);
    EXPECT_EQ(host.read(host.send("POST", "/metrics")).headers.at("allow"), "GET, HEAD");
    const auto head = host.send("HEAD", "/v1/models"), get = host.send("GET", "/v1/models");
    EXPECT_EQ(host.body(head), "") << "a head is not followed by a body";
    EXPECT_EQ(host.read(head).headers.at("content-length"), std::to_string(host.body(get).size()));
    const auto id = host.chat(R"("model":"gpt-9")");
    EXPECT_EQ(host.read(id).status, 404);
    EXPECT_THAT(host.body(id), HasSubstr("test-model"));
}

TEST(HttpService, TheRequestIdComesBackOrIsMade) {
    Host host;
    const std::string body = R"({"messages":[{"role":"user","content":"hi"}]})";
    const auto mine = host.send("POST", "/v1/chat/completions", body, {{"x-request-id", "job-7"}});
    const auto made = host.send("POST", "/v1/chat/completions", body);
    const auto bad =
        host.send("POST", "/v1/chat/completions", body, {{"x-request-id", std::string(500, 'x')}});
    host.run();
    EXPECT_EQ(host.read(mine).headers.at("x-request-id"), "job-7");
    EXPECT_EQ(host.json_of(mine).at("fullstop").at("request_id"), "job-7");
    EXPECT_THAT(host.read(made).headers.at("x-request-id"), HasSubstr("fs-"));
    EXPECT_EQ(host.read(bad).status, 400);
}

TEST(HttpService, AConnectionIsClosedWhenTheClientAsksForIt) {
    Host host;
    const auto id = host.send("GET", "/health", "", {{"connection", "Close"}});
    EXPECT_FALSE(host.clients[id].keep_alive);
    EXPECT_EQ(host.read(id).headers.at("connection"), "close");
}

TEST(HttpService, AClientThatLeavesFreesItsPlaceForTheNext) {
    Host host(TestBackend{base::Tokens{128}, 1});
    host.backend.answers["user:hi\n"] = std::string(100, 'x');
    const auto leaver = host.chat(R"("stream":true)"),
               next = host.chat(R"("stream":true,"max_tokens":3)");
    for (int i = 0; i < 4; ++i) host.step();
    net::ServiceActions out;
    host.service.client_left(host.now, leaver, out);
    const std::string before = host.clients[leaver].bytes;
    host.run();
    EXPECT_EQ(host.clients[leaver].bytes, before);
    EXPECT_EQ(host.read(next).text, "xxx");
    EXPECT_EQ(host.service.open_answers(), 0U);
    EXPECT_THAT(host.get("/metrics"),
                HasSubstr("fullstop_answers_total{cause=\"client_cancelled\",layer=\"client\"} 1"));
}

TEST(HttpService, DrainingRefusesNewRequestsLetsRunningOnesFinishAndSaysWhenTimeIsUp) {
    Host host(TestBackend{base::Tokens{128}, 2});
    host.backend.answers["user:hi\n"] = std::string(100, 'x');
    const auto brief = host.chat(R"("stream":true,"max_tokens":5)"),
               endless = host.chat(R"("stream":true)"), queued = host.chat(R"("stream":true)");
    host.step();
    net::ServiceActions out;
    host.service.drain(host.now, out);
    host.carry_out(out);
    EXPECT_EQ(host.wake_at, host.now + 5s);
    const auto late = host.chat("");
    EXPECT_EQ(host.read(late).status, 503);
    EXPECT_TRUE(host.read(late).headers.contains("retry-after"));
    EXPECT_EQ(host.read(host.send("GET", "/health")).status, 503);
    for (int i = 0; i < 6; ++i) host.step();
    EXPECT_EQ(host.read(brief).end.reason, "length");
    host.service.wake(*host.wake_at, out);
    host.run();
    const auto record = host.read(endless);
    EXPECT_EQ(record.fullstop_cause, "aborted_by_server");
    EXPECT_EQ(record.end.reason, std::nullopt);
    EXPECT_FALSE(record.end.terminator);
    EXPECT_THAT(record.end.error->text, HasSubstr("shutting down"));
    EXPECT_TRUE(host.clients[queued].closed);
    EXPECT_EQ(host.service.open_answers(), 0U);
}

TEST(HttpService, ASilentStreamCarriesACommentAndNoContent) {
    Host host;
    host.backend.answers["user:hi\n"] = "hello";
    const auto id = host.chat(R"("stream":true)"), whole = host.chat("");
    host.step();
    ASSERT_TRUE(host.wake_at.has_value());
    EXPECT_EQ(*host.wake_at - host.now, kHeartbeat - 3ms) << "three calls after the stream began";
    const auto text_came = host.now;
    net::ServiceActions out;
    host.service.wake(host.now = *host.wake_at, out);
    host.carry_out(std::exchange(out, {}));
    EXPECT_THAT(host.clients[id].bytes, Not(HasSubstr("goes on"))) << "its first text came since";
    EXPECT_EQ(*host.wake_at, text_came + kHeartbeat);
    host.service.wake(host.now = *host.wake_at, out);
    host.carry_out(out);
    EXPECT_THAT(host.clients[id].bytes, HasSubstr("\r\n: the answer goes on\n\n\r\n"));
    EXPECT_EQ(host.clients[whole].bytes, "") << "only streams have begun";
    EXPECT_EQ(*host.wake_at, host.now + kHeartbeat);
    host.run();
    EXPECT_EQ(host.read(id).text, "hello");
    EXPECT_TRUE(host.read(id).end.terminator);
    host.service.wake(*host.wake_at, out = {});
    EXPECT_TRUE(out.empty()) << "nothing is left to watch";
}

TEST(HttpService, StatusAndMetricsTellTheSameTruth) {
    Host host(TestBackend{base::Tokens{64}, 2});
    host.backend.answers["user:hi\n"] = std::string(40, 'x');
    for (int i = 0; i < 3; ++i) host.chat(R"("stream":true,"max_tokens":20)");
    for (int i = 0; i < 4; ++i) host.step();
    const auto status = json::parse(host.get("/fullstop/status"));
    EXPECT_EQ(status.at("running"), 2);
    EXPECT_EQ(status.at("waiting"), 1);
    EXPECT_EQ(status.at("window"), 64);
    EXPECT_EQ(status.at("pool"), 128);
    EXPECT_EQ(status.at("kv_tokens_used"), host.backend.cells());
    EXPECT_EQ(status.at("kv_tokens_reserved"), 64)
        << "two answers of 8 + 20 tokens, in blocks of 16";
    EXPECT_EQ(status.at("kv_bytes_per_token"), 10);
    const std::string metrics = host.get("/metrics");
    EXPECT_THAT(metrics, HasSubstr("\nfullstop_requests_running 2\n"));
    EXPECT_THAT(metrics, HasSubstr("\nfullstop_requests_waiting 1\n"));
    EXPECT_THAT(metrics,
                HasSubstr(fmt::format("\nfullstop_kv_tokens_used {}\n", host.backend.cells())));
    EXPECT_THAT(metrics, HasSubstr("\nfullstop_inter_token_latency_seconds_count 6\n"));
    host.run();
    EXPECT_EQ(json::parse(host.get("/fullstop/status")).at("ends").at("token_limit"), 3);
    EXPECT_THAT(host.get("/metrics"),
                HasSubstr("\nfullstop_time_to_first_token_seconds_count 3\n"));
    EXPECT_EQ(json::parse(host.get("/v1/models")).at("data").at(0).at("id"), "test-model");
}

TEST(HttpService, TheSameSeedGivesTheSameAnswerAndNoSeedAnother) {
    Host host(TestBackend{base::Tokens{64}, 8});
    const auto ask = [&](const std::string& more) {
        return host.send("POST", "/v1/completions",
                         R"({"prompt":"x\n","temperature":30,"max_tokens":30)" + more + "}");
    };
    const auto a = ask(R"(,"seed":5)"), b = ask(R"(,"seed":5)"), c = ask(R"(,"seed":6)"),
               d = ask(""), e = ask("");
    host.run();
    const auto text = [&](ConnectionId id) {
        return std::string(host.json_of(id).at("choices").at(0).at("text").as_string());
    };
    EXPECT_EQ(text(a), text(b));
    EXPECT_NE(text(a), text(c));
    EXPECT_NE(text(d), text(e));
}

}  // namespace
}  // namespace fullstop::engine
