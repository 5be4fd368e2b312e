// The maximum of one answer: which one holds, and that only its number changes in the request.
#include "gateway/output_limit.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>

#include "gateway/request_head.h"

namespace fullstop::gateway {
namespace {

TEST(OutputLimit, OnlyWhatIsConfiguredAndLowerThanAskedFor) {
    EXPECT_FALSE(output_limit({}, 100, std::nullopt));
    const OutputLimits fixed{.max_tokens = 500, .by_load = {}, .floor = 64};
    EXPECT_EQ(output_limit(fixed, 1, std::nullopt)->max_tokens, 500);
    EXPECT_EQ(output_limit(fixed, 1, 501)->max_tokens, 500);
    EXPECT_FALSE(output_limit(fixed, 1, 500));
}

TEST(OutputLimit, WithMoreUsersTheLowerStepHoldsButNeverBelowTheFloor) {
    const OutputLimits limits{.max_tokens = 800, .by_load = {{.users = 4, .max_tokens = 400}, {.users = 8, .max_tokens = 10}}, .floor = 64};
    EXPECT_EQ(output_limit(limits, 3, 1000)->max_tokens, 800);
    EXPECT_FALSE(output_limit(limits, 3, 1000)->by_load);
    EXPECT_EQ(output_limit(limits, 4, 1000)->max_tokens, 400);
    EXPECT_TRUE(output_limit(limits, 4, 1000)->by_load);
    EXPECT_EQ(output_limit(limits, 8, 1000)->max_tokens, 64);
    EXPECT_FALSE(output_limit(limits, 8, 64));
}

TEST(OutputLimit, TheNumberIsExchangedAndEverythingElseKeepsItsBytes) {
    EXPECT_EQ(with_max_tokens(R"({ "a" : 1e400, "max_tokens" : 900 , "b":"\"max_tokens\":7","c":[{"max_tokens":3}] })", "/v1/chat/completions", 50),
              R"({ "a" : 1e400, "max_tokens" : 50 , "b":"\"max_tokens\":7","c":[{"max_tokens":3}] })");
    EXPECT_EQ(with_max_tokens(R"({"max_tokens":900,"max_completion_tokens":20,"max_tokens":null})", "/v1/chat/completions", 50),
              R"({"max_tokens":50,"max_completion_tokens":20,"max_tokens":50})");
    EXPECT_EQ(with_max_tokens(R"({"n_predict":-1})", "/completion", 50), R"({"n_predict":50})");
    EXPECT_EQ(with_max_tokens(R"({"options":{"num_ctx":5,"num_predict":300}})", "/api/chat", 50), R"({"options":{"num_ctx":5,"num_predict":50}})");
}

TEST(OutputLimit, AMissingLimitIsAddedWhereTheDialectLooks) {
    EXPECT_EQ(with_max_tokens(R"({"messages":[]})", "/v1/chat/completions", 50), R"({"max_tokens":50,"messages":[]})");
    EXPECT_EQ(with_max_tokens("{}", "/v1/completions", 50), R"({"max_tokens":50})");
    EXPECT_EQ(with_max_tokens(R"({"prompt":"x"})", "/completion", 50), R"({"n_predict":50,"prompt":"x"})");
    EXPECT_EQ(with_max_tokens(R"({"prompt":"x"})", "/api/generate", 50), R"({"options":{"num_predict":50},"prompt":"x"})");
    EXPECT_EQ(with_max_tokens(R"({"options":{}})", "/api/chat", 50), R"({"options":{"num_predict":50}})");
    EXPECT_EQ(with_max_tokens(R"({"options":{"seed":1}})", "/api/chat", 50), R"({"options":{"num_predict":50,"seed":1}})");
    EXPECT_EQ(with_max_tokens(R"({"inputs":"x"})", "/generate_stream", 50), R"({"parameters":{"max_new_tokens":50},"inputs":"x"})");
    EXPECT_EQ(with_max_tokens(R"({"prompt":"x"})", "/api/v1/generate", 50), R"({"max_length":50,"prompt":"x"})");
}

TEST(OutputLimit, WhatIsNoJsonObjectIsLeftAlone) {
    EXPECT_FALSE(with_max_tokens("not json", "/v1/completions", 50));
    EXPECT_FALSE(with_max_tokens("[1]", "/v1/completions", 50));
    EXPECT_FALSE(with_max_tokens("", "/v1/completions", 50));
}

/// Any body of nested members: valid JSON afterwards, the limit where it is read, all other members the same.
RC_GTEST_PROP(OutputLimitProperty, AnyBodyStaysTheSameButForTheLimit, ()) {
    namespace json = boost::json;
    json::object body;
    const int members = *rc::gen::inRange(0, 6);
    for (int i = 0; i < members; ++i) {
        const auto name = *rc::gen::element<std::string>("max_tokens", "a\"b", "messages", "stop", "max_completion_tokens", "\\u0041{");
        switch (*rc::gen::inRange(0, 5)) {
            case 0: body[name] = *rc::gen::inRange<std::int64_t>(-5, 5000); break;
            case 1: body[name] = *rc::gen::element<std::string>("}{,:\"\\", "text", "", "\n\t"); break;
            case 2: body[name] = json::array{1, "]", json::object{{"max_tokens", 9}}, nullptr}; break;
            case 3: body[name] = json::object{{"x", json::array{json::object{}}}}; break;
            default: body[name] = nullptr;
        }
    }
    const auto changed = with_max_tokens(json::serialize(body), "/v1/chat/completions", 77);
    RC_ASSERT(changed.has_value());
    json::object after = json::parse(*changed).as_object();
    RC_ASSERT(requested_max_tokens(*changed).value_or(1000) <= 77);
    for (const auto& [name, value] : body)
        if (name != "max_tokens" && name != "max_completion_tokens") RC_ASSERT(after.at(name) == value);
}

}  // namespace
}  // namespace fullstop::gateway
