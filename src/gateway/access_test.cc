// Who may ask the gateway: holders of its keys, each counted by name, and no page of another
// origin. No client's key goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/test_crowd.h"

namespace fullstop::gateway {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

serving::Access keys(const std::string& file) {
    return {.keys = serving::ApiKeys::parse(file, "keys").value()};
}

Policy with_keys() {
    Policy policy = Crowd::policy_of(2);
    policy.access = keys("alice: wonder\nbob: builder\n");
    policy.upstreams[0].api_key = "first-secret";
    return policy;
}

bool head_wanted(Crowd& crowd, std::map<std::string, std::string> headers) {
    bool wanted = false;
    crowd.act([&](Actions& out) {
        wanted = crowd.gateway.head(crowd.now,
                                    {.id = 1000,
                                     .method = "POST",
                                     .target = "/v1/chat/completions",
                                     .headers = std::move(headers),
                                     .body = {}},
                                    out);
        EXPECT_EQ(out.client.size(), wanted ? 0U : 2U);
    });
    return wanted;
}

TEST(GatewayAccess, WithoutAKeyNothingIsPassedOnAndNothingIsTold) {
    Crowd crowd(with_keys());
    for (const char* key : {"", "Bearer guess", "wonder"}) {
        const auto id = crowd.ask(R"({"stream":true})", key);
        EXPECT_THAT(crowd[id].seen.raw,
                    AllOf(HasSubstr("HTTP/1.1 401"), HasSubstr("invalid_api_key"),
                          HasSubstr("WWW-Authenticate: Bearer"), Not(HasSubstr("wonder"))));
        EXPECT_FALSE(crowd.passed_on(id));
    }
    EXPECT_THAT(crowd.page("/metrics"), HasSubstr("invalid_api_key"));
    EXPECT_THAT(crowd.page("/health"), HasSubstr("ok"));
}

TEST(GatewayAccess, AKeyIsLookedAtBeforeTheBodyIsRead) {
    Crowd crowd(with_keys());
    EXPECT_TRUE(head_wanted(crowd, {{"authorization", "Bearer wonder"}}));
    EXPECT_FALSE(head_wanted(crowd, {{"authorization", "Bearer guess"}, {"x-request-id", "mine"}}));
    EXPECT_THAT(crowd[1000].seen.raw, HasSubstr("X-Request-Id: mine"));
}

TEST(GatewayAccess, AServerGetsItsOwnKeyOrNoneAndNeverAClients) {
    Crowd crowd(with_keys());
    const auto first = crowd.ask(R"({"stream":true,"max_tokens":10})", "Bearer wonder");
    crowd.connect(first);
    EXPECT_THAT(crowd[first].sent, AllOf(HasSubstr("authorization: Bearer first-secret\r\n"),
                                         Not(HasSubstr("wonder"))));
    crowd.refuse_connection(first);  // elsewhere, which has no key
    ASSERT_EQ(crowd[first].upstream, 2);
    crowd.connect(first);
    EXPECT_THAT(crowd[first].sent, AllOf(Not(HasSubstr("authorization")), Not(HasSubstr("secret")),
                                         Not(HasSubstr("wonder"))));
}

TEST(GatewayAccess, WithoutAKeyFileClientsKeepTheirKeys) {
    Policy policy = with_keys();
    policy.access = {};
    Crowd crowd(policy);
    const auto id = crowd.ask(R"({"stream":true})", "Bearer theirs");
    crowd.connect(id);
    EXPECT_THAT(crowd[id].sent,
                AllOf(HasSubstr("authorization: Bearer theirs\r\n"), Not(HasSubstr("secret"))));
}

TEST(GatewayAccess, BudgetsAreCountedByTheNameOfTheKey) {
    Policy policy = with_keys();
    policy.budgets.per_key = TokenWindow{.tokens = 100};
    Crowd crowd(policy);
    const std::string body = R"({"stream":true,"max_tokens":60})";
    EXPECT_TRUE(crowd.passed_on(crowd.ask(body, "Bearer wonder")));
    const auto second = crowd.ask(body, "bearer  wonder");  // another spelling of the same key
    EXPECT_THAT(crowd[second].seen.raw,
                AllOf(HasSubstr("429"), HasSubstr("the budget of this key")));
    EXPECT_TRUE(crowd.passed_on(crowd.ask(body, "Bearer builder")));
}

TEST(GatewayAccess, NewKeysHoldFromTheNextRequestOn) {
    Crowd crowd(with_keys());
    const auto running = crowd.ask(R"({"stream":true})", "Bearer wonder");
    Policy policy = with_keys();
    policy.access = keys("carol: new\n");
    crowd.act([&](Actions& out) { crowd.gateway.configure(policy, crowd.now, out); });
    EXPECT_THAT(crowd[crowd.ask(R"({"stream":true})", "Bearer wonder")].seen.raw, HasSubstr("401"));
    EXPECT_TRUE(crowd.passed_on(crowd.ask(R"({"stream":true})", "Bearer new")));
    crowd.answer(running);
    EXPECT_TRUE(crowd.over(running));
    EXPECT_THAT(crowd[running].seen.raw, HasSubstr("[DONE]"));
}

TEST(GatewayAccess, APageOfAnotherOriginIsNotPassedOn) {
    Crowd crowd(Crowd::policy_of(1));
    EXPECT_FALSE(head_wanted(crowd, {{"host", "127.0.0.1:8081"},
                                     {"origin", "https://evil.example"},
                                     {"content-type", "text/plain"}}));
    EXPECT_THAT(crowd[1000].seen.raw, AllOf(HasSubstr("HTTP/1.1 403"), HasSubstr("foreign_page")));
    EXPECT_TRUE(
        head_wanted(crowd, {{"host", "127.0.0.1:8081"}, {"origin", "http://127.0.0.1:8081"}}));
}

}  // namespace
}  // namespace fullstop::gateway
