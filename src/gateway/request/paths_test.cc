// One path in many spellings: what is an answer, what is an own page, and what is refused.
#include "gateway/gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "gateway/test_upstream.h"

namespace fullstop::gateway {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kChat = "/v1/chat/completions";

TEST(GatewayPaths, EverySpellingOfAnAnswerPathIsHeldToItsLimitsAndGoesOnInOneForm) {
    for (const auto* spelling :
         {"/v1/chat/completions", "/v1/chat/completion%73", "/v1/chat/completions/",
          "/v1/chat/completions;x", "/v1/chat/completions#", "//v1/x/../chat/completions",
          "http://gateway/v1/chat/completions"}) {
        auto options = Bench::default_options();
        options.policy.output.max_tokens = 64;
        options.policy.budgets.routes["/v1/chat/completions"] = {.tokens = 200};
        Bench bench(options);
        bench.request(bench.post(spelling, R"({"max_tokens":5000})"));
        bench.connected();
        EXPECT_THAT(bench.sent, AllOf(StartsWith("POST /v1/chat/completions HTTP/1.1\r\n"),
                                      HasSubstr(R"({"max_tokens":64})")))
            << spelling;
        bench.seen = {};
        bench.request(bench.post(spelling));
        EXPECT_EQ(bench.gateway.running(), 2U) << "two of 96 fit 200";
        bench.request(bench.post(spelling));
        EXPECT_THAT(bench.seen.raw, HasSubstr("HTTP/1.1 429 ")) << spelling;
    }
}

TEST(GatewayPaths, MessagesAndResponsesAreAnswers) {
    for (const auto& [path, sent] :
         {std::pair("/v1/messages", R"({"max_tokens":64,"stream":true})"),
          std::pair("/v1/responses", R"({"max_output_tokens":64,"stream":true})")}) {
        auto options = Bench::default_options();
        options.policy.output.max_tokens = 64;
        options.policy.upstreams.front().max_concurrency = 1;
        Bench bench(options);
        bench.request(bench.post(path, R"({"stream":true})"));
        bench.connected();
        EXPECT_THAT(bench.sent, HasSubstr(sent));
        bench.request(bench.post(path));
        EXPECT_EQ(bench.gateway.waiting(), 1U);
    }
}

TEST(GatewayPaths, OwnPagesAreOwnInEverySpelling) {
    for (const auto* spelling : {"/metrics", "//metrics", "/metrics/", "/%6Detrics",
                                 "http://x/metrics", "/v1/../metrics?x=1"}) {
        Bench bench;
        bench.request(bench.get(spelling));
        EXPECT_THAT(bench.seen.body(), HasSubstr("fullstop_gateway_")) << spelling;
        EXPECT_EQ(bench.connects, 0) << spelling;
    }
}

TEST(GatewayPaths, WhatCouldBeAnAnswerIsRefusedUnlessItIsToBeRelayed) {
    for (const auto* path :
         {"/v1/complete", "/invocations", "/", "/V1/Chat/Completions", "/v1/engines/x/chat"}) {
        Bench bench;
        bench.request(bench.post(path));
        EXPECT_THAT(bench.seen.raw, AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("[paths] other")))
            << path;
        EXPECT_EQ(bench.connects, 0);
        auto options = Bench::default_options();
        options.policy.other_paths = OtherPaths::kRelay;
        Bench relaying(options);
        relaying.request(relaying.post(path));
        EXPECT_EQ(relaying.connects, 1) << path;
    }
    Bench bench;
    auto put = bench.post(kChat);
    put.method = "PUT";
    bench.request(put);
    EXPECT_THAT(bench.seen.raw, StartsWith("HTTP/1.1 403 "));
}

TEST(GatewayPaths, WhatCannotBeAnAnswerIsRelayed) {
    for (const auto* path : {"/v1/embeddings", "/tokenize", "/api/show", "/api/blobs/sha256:x",
                             "/v1/messages/count_tokens"}) {
        Bench bench;
        bench.request(bench.post(path, "no json"));
        EXPECT_EQ(bench.connects, 1) << path;
    }
    for (const auto* method : {"GET", "HEAD", "OPTIONS", "DELETE"}) {
        Bench bench;
        auto request = bench.get("/any/thing");
        request.method = method;
        bench.request(request);
        EXPECT_EQ(bench.connects, 1) << method;
    }
}

TEST(GatewayPaths, WhatServersReadDifferentlyIsRefusedInOneLineOfCharacters) {
    for (const std::string target :
         {"/v1/chat/completion%2573", "/a%00", "/a\\b", "completions", "/a%zz\xFF"}) {
        Bench bench;
        bench.request(bench.post(target));
        EXPECT_THAT(bench.seen.raw, StartsWith("HTTP/1.1 400 ")) << target;
        EXPECT_FALSE(base::first_invalid_byte(bench.seen.raw)) << target;
        EXPECT_EQ(bench.connects, 0);
    }
}

}  // namespace
}  // namespace fullstop::gateway
