// Numbers and bodies from anybody: none of them ends the gateway or passes its limits.
#include "gateway/gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "gateway/ending/error_body.h"
#include "gateway/test_crowd.h"
#include "gateway/test_upstream.h"
#include "serving/limits.h"

namespace fullstop::gateway {
namespace {

using testing::HasSubstr;

constexpr const char* kChat = "/v1/chat/completions";

TEST(GatewayBodies, NumbersBeyondEverythingEndNothing) {
    Crowd crowd(Crowd::policy_of(1));
    std::vector<net::ConnectionId> all;
    for (const auto* number :
         {"9007199254740992", "9223372036854775807", "1e30", "-9223372036854775808"})
        for (int i = 0; i < 300; ++i)
            all.push_back(
                crowd.ask(R"({"stream":true,"n":128,"max_tokens":)" + std::string(number) + "}"));
    EXPECT_THAT(crowd.page("/fullstop/status"), HasSubstr("\"running\":1200"));
    const std::string usage =
        R"(,"usage":{"prompt_tokens":9007199254740992,"completion_tokens":-9007199254740992})";
    for (const auto id : all) crowd.answer(id, "stop", usage);
    EXPECT_THAT(crowd.page("/fullstop/status"), HasSubstr("\"kv_tokens_held\":0"));
}

TEST(GatewayBodies, WhatAServerSaysOfItselfIsClampedToo) {
    Crowd crowd(Crowd::policy_of(1));
    const std::int64_t huge = std::int64_t{1} << 53;
    crowd.act([&](Actions& out) {
        crowd.gateway.learned(
            1, {.server = "x", .slots = 2000, .pool = {}, .window = huge, .default_output = huge},
            crowd.now, out);
    });
    std::vector<net::ConnectionId> all;
    for (int i = 0; i < 1100; ++i) all.push_back(crowd.ask(R"({"n":128})"));
    crowd.act([&](Actions& out) {
        crowd.gateway.learned(1, {.server = "x", .slots = 0, .pool = -5, .window = -huge},
                              crowd.now, out);
    });
    for (const auto id : all) crowd.answer(id);
    EXPECT_THAT(crowd.page("/fullstop/status"), HasSubstr("\"kv_tokens_held\":0"));
}

TEST(GatewayBodies, WithLimitsABodyThatOthersMayReadOtherwiseIsRefused) {
    const auto status_of = [](const std::string& body, bool limits) {
        auto options = Bench::default_options();
        if (limits) options.policy.output.max_tokens = 64;
        Bench bench(options);
        bench.request(bench.post(kChat, body));
        return bench.connects == 1 ? "relayed" : bench.seen.raw.substr(9, 3);
    };
    for (const std::string body :
         {"", "\xEF\xBB\xBF{\"max_tokens\":5000}", "{\"x\":NaN}", "{\"max_tokens\":5000/**/}",
          "{}x", "[{}]", "{\"x\":\"\xFF\"}"}) {
        EXPECT_EQ(status_of(body, true), "400") << body;
        EXPECT_EQ(status_of(body, false), "relayed") << body;
    }
    EXPECT_EQ(status_of(R"({"max_tokens":1,"max_tokens":5000})", false), "400")
        << "servers differ in which of the two counts";
    EXPECT_EQ(status_of(R"({"x":"\ud800"})", true), "relayed")
        << "JSON, and its members are beyond doubt";
}

TEST(GatewayBodies, OurOwnErrorsAreBoundedAndCharacters) {
    const std::string message = "\xFFx" + std::string(9000, 'a') + "\xE2\x82\xAC";
    for (const std::string& error :
         {error_body(message, "type", "code"),
          error_body(End{.detail = message}, AnswerNumbers{}, ErrorShape::kMessages),
          error_body(std::string(serving::kMaxMessageBytes - 1, 'a') + "\xE2\x82\xAC", "t", "c")}) {
        EXPECT_FALSE(base::first_invalid_byte(error));
        EXPECT_LT(error.size(), 2 * serving::kMaxMessageBytes + 1000);
    }
}

}  // namespace
}  // namespace fullstop::gateway
