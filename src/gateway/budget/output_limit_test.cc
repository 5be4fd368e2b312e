// The maximum of one answer: which one holds, and that only its number changes in the request.
#include "gateway/budget/output_limit.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <boost/json.hpp>

#include "gateway/request/request_body.h"

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
    const OutputLimits limits{
        .max_tokens = 800,
        .by_load = {{.users = 4, .max_tokens = 400}, {.users = 8, .max_tokens = 10}},
        .floor = 64};
    EXPECT_EQ(output_limit(limits, 3, 1000)->max_tokens, 800);
    EXPECT_FALSE(output_limit(limits, 3, 1000)->by_load);
    EXPECT_EQ(output_limit(limits, 4, 1000)->max_tokens, 400);
    EXPECT_TRUE(output_limit(limits, 4, 1000)->by_load);
    EXPECT_EQ(output_limit(limits, 8, 1000)->max_tokens, 64);
    EXPECT_FALSE(output_limit(limits, 8, 64));
}

/// As the gateway does it.
std::string lowered(const std::string& body, const std::string& path, std::int64_t most) {
    const auto read = read_body(body);
    return read ? with_max_tokens(body, path, read->limits, most) : read.error().message;
}

constexpr const char* kChat = "/v1/chat/completions";

TEST(OutputLimit, TheNumberIsExchangedAndEverythingElseKeepsItsBytes) {
    EXPECT_EQ(
        lowered(
            R"({ "a" : 1e400, "max_tokens" : 900 , "b":"\"max_tokens\":7","c":[{"max_tokens":3}] })",
            kChat, 50),
        R"({ "a" : 1e400, "max_tokens" : 50 , "b":"\"max_tokens\":7","c":[{"max_tokens":3}] })");
    EXPECT_EQ(lowered(R"({"max_tokens":900,"max_completion_tokens":20})", kChat, 50),
              R"({"max_tokens":50,"max_completion_tokens":20})");
    EXPECT_EQ(lowered(R"({"n_predict":-1})", "/completion", 50), R"({"n_predict":50})");
    EXPECT_EQ(lowered(R"({"options":{"num_ctx":5,"num_predict":300}})", "/api/chat", 50),
              R"({"options":{"num_ctx":5,"num_predict":50}})");
}

TEST(OutputLimit, EverySpellingOfALimitIsExchanged) {
    for (const auto* spelled : {"5000.5", "1e30", "6.4e5", "5e3", "-1", "\"5000\"", "null", "true",
                                "1e400", "99999999999999999999", "51", "0"})
        EXPECT_EQ(lowered(R"({"max_tokens":)" + std::string(spelled) + "}", kChat, 50),
                  R"({"max_tokens":50})")
            << spelled;
    EXPECT_EQ(lowered(R"({"max\u005ftokens":5000})", kChat, 50), R"({"max\u005ftokens":50})");
    EXPECT_EQ(lowered(R"({"max_tokens":49})", kChat, 50), R"({"max_tokens":49})");
}

TEST(OutputLimit, ALimitThatStandsTwiceIsRefused) {
    for (const auto* body :
         {R"({"max_tokens":1,"max_tokens":5000})", R"({"max_tokens":1,"max\u005ftokens":5000})",
          R"({"options":{"num_predict":1,"num_predict":2}})",
          R"({"options":{},"options":{"num_predict":5000}})", R"({"n":1,"n":9})",
          R"({"messages":[],"messages":[]})", R"({"stream":true,"stream":false})"}) {
        const auto read = read_body(body);
        ASSERT_FALSE(read) << body;
        EXPECT_FALSE(read.error().no_json);
        EXPECT_NE(read.error().message.find("more than once"), std::string::npos)
            << read.error().message;
    }
    EXPECT_FALSE(read_body(R"({"max_tokens":[5000]})"));
    EXPECT_TRUE(read_body(R"({"stop":1,"stop":2,"options":{"seed":1,"seed":1}})"))
        << "what decides nothing here is the upstream's to read";
}

TEST(OutputLimit, AMissingLimitIsAddedWhereTheDialectLooks) {
    EXPECT_EQ(lowered(R"({"messages":[]})", kChat, 50), R"({"max_tokens":50,"messages":[]})");
    EXPECT_EQ(lowered("{}", "/v1/completions", 50), R"({"max_tokens":50})");
    EXPECT_EQ(lowered(R"({"prompt":"x"})", "/completion", 50), R"({"n_predict":50,"prompt":"x"})");
    EXPECT_EQ(lowered(R"({"prompt":"x"})", "/api/generate", 50),
              R"({"options":{"num_predict":50},"prompt":"x"})");
    EXPECT_EQ(lowered(R"({"options":{}})", "/api/chat", 50), R"({"options":{"num_predict":50}})");
    EXPECT_EQ(lowered(R"({"options":{"seed":1}})", "/api/chat", 50),
              R"({"options":{"num_predict":50,"seed":1}})");
    EXPECT_EQ(lowered(R"({"inputs":"x"})", "/generate_stream", 50),
              R"({"parameters":{"max_new_tokens":50},"inputs":"x"})");
    EXPECT_EQ(lowered(R"({"prompt":"x"})", "/api/v1/generate", 50),
              R"({"max_length":50,"prompt":"x"})");
    EXPECT_EQ(lowered(R"({"input":"x"})", "/v1/responses", 50),
              R"({"max_output_tokens":50,"input":"x"})");
    EXPECT_EQ(lowered(R"({"messages":[]})", "/v1/messages", 50),
              R"({"max_tokens":50,"messages":[]})");
}

/// A limit that the server of a path does not look at limits nothing there.
TEST(OutputLimit, ALimitInAnotherDialectIsNone) {
    struct Row {
        const char *path, *body, *sent;
    };
    for (
        const Row& row :
        {Row{kChat, R"({"options":{"num_predict":9}})",
             R"({"max_tokens":50,"options":{"num_predict":9}})"},
         Row{kChat, R"({"max_length":9})", R"({"max_tokens":50,"max_length":9})"},
         Row{"/v1/completions", R"({"max_completion_tokens":9})",
             R"({"max_tokens":50,"max_completion_tokens":9})"},
         Row{"/v1/responses", R"({"max_tokens":9})", R"({"max_output_tokens":50,"max_tokens":9})"},
         Row{"/api/chat", R"({"num_predict":9})",
             R"({"options":{"num_predict":50},"num_predict":9})"},
         Row{"/generate", R"({"text":"x"})",
             R"({"parameters":{"max_new_tokens":50},"sampling_params":{"max_new_tokens":50},"text":"x"})"},
         Row{"/generate", R"({"sampling_params":{"max_new_tokens":900}})",
             R"({"parameters":{"max_new_tokens":50},"sampling_params":{"max_new_tokens":50}})"}}) {
        const auto read = read_body(row.body);
        ASSERT_TRUE(read) << row.body;
        EXPECT_FALSE(read->limits.limit_everywhere(row.path)) << row.path << row.body;
        EXPECT_EQ(lowered(row.body, row.path, 50), row.sent) << row.path;
    }
    EXPECT_EQ(no_place_for_limit("/generate",
                                 read_body(R"({"text":["x"],"sampling_params":[{}]})")->limits),
              "sampling_params");
    EXPECT_FALSE(no_place_for_limit(kChat, read_body(R"({"options":[]})")->limits));
}

/// Any body of nested members: valid JSON afterwards, the limit where it is read, all other members
/// the same.
RC_GTEST_PROP(OutputLimitProperty, AnyBodyStaysTheSameButForTheLimit, ()) {
    namespace json = boost::json;
    json::object body;
    const int members = *rc::gen::inRange(0, 6);
    for (int i = 0; i < members; ++i) {
        const auto name = *rc::gen::element<std::string>("max_tokens", "a\"b", "messages", "stop",
                                                         "max_completion_tokens", "\\u0041{");
        switch (*rc::gen::inRange(0, 5)) {
            case 0: body[name] = *rc::gen::inRange<std::int64_t>(-5, 5000); break;
            case 1:
                body[name] = *rc::gen::element<std::string>("}{,:\"\\", "text", "", "\n\t");
                break;
            case 2:
                body[name] = json::array{1, "]", json::object{{"max_tokens", 9}}, nullptr};
                break;
            case 3: body[name] = json::object{{"x", json::array{json::object{}}}}; break;
            default: body[name] = nullptr;
        }
    }
    const std::string text = json::serialize(body);
    const auto read = read_body(text);
    const bool no_number = std::ranges::any_of(body, [](const auto& each) {
        return each.key().starts_with("max_") && each.value().is_structured();
    });
    RC_ASSERT(read.has_value() != no_number);
    if (!read) return;
    const std::string changed = with_max_tokens(text, kChat, read->limits, 77);
    json::object after = json::parse(changed).as_object();
    RC_ASSERT(read_body(changed)->limits.limit_everywhere(kChat));
    RC_ASSERT(*read_body(changed)->limits.max_tokens(kChat) <= 77);
    for (const auto& [name, value] : body)
        if (name != "max_tokens" && name != "max_completion_tokens")
            RC_ASSERT(after.at(name) == value);
}

}  // namespace
}  // namespace fullstop::gateway
