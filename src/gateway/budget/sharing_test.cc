// A request that shares its budgets waits for the store's word, its own gateway's counts go on
// beside it, and every question is followed by exactly one end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/test_crowd.h"

namespace fullstop::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using What = StoreAnswer::What;

constexpr auto kBody = R"({"stream":true,"max_tokens":600})";  // 632 tokens with its template

Policy shared(SharedStore::OnLoss on_loss = SharedStore::OnLoss::kOpen) {
    Policy policy = Crowd::policy_of(1);
    policy.budgets.overall = TokenWindow{.tokens = 5000, .window = seconds(60)};
    policy.budgets.per_key = TokenWindow{.tokens = 1000, .window = seconds(60)};
    policy.budgets.shared = SharedStore{.host = "store", .on_loss = on_loss};
    return policy;
}

struct SharingCrowd : Crowd {
    using Crowd::Crowd;
    void told(net::ConnectionId id, What what, std::size_t window = 0, std::int64_t left = 0,
              std::optional<base::Duration> retry_after = {}) {
        act([&](Actions& out) {
            gateway.answered({.id = id,
                              .what = what,
                              .window = window,
                              .left = left,
                              .retry_after = retry_after,
                              .took = milliseconds(2)},
                             now, out);
        });
    }
    std::vector<StoreSettle> settled() const {
        std::vector<StoreSettle> out;
        for (const StoreAsk& ask : asked)
            if (const auto* settle = std::get_if<StoreSettle>(&ask)) out.push_back(*settle);
        return out;
    }
};

TEST(Sharing, ARequestIsPassedOnWhenTheStoreHasGrantedAllItsWindows) {
    SharingCrowd crowd(shared());
    const auto a = crowd.ask(kBody, "Bearer secret");
    EXPECT_FALSE(crowd.passed_on(a));
    ASSERT_EQ(crowd.asked.size(), 1U);
    const auto& ask = std::get<StoreReserve>(crowd.asked[0]);
    EXPECT_EQ(ask.id, a);
    EXPECT_EQ(ask.tokens, 632);
    ASSERT_EQ(ask.windows.size(), 2U);
    EXPECT_EQ(ask.windows[0].name, "overall");
    EXPECT_THAT(ask.windows[1].name, AllOf(HasSubstr("key:"), Not(HasSubstr("secret"))));
    EXPECT_EQ(ask.windows[1].limit.tokens, 1000);
    crowd.told(a, What::kGranted);
    ASSERT_TRUE(crowd.passed_on(a));
    crowd.answer(a, "stop", R"(,"usage":{"prompt_tokens":10,"completion_tokens":5})");
    ASSERT_EQ(crowd.settled().size(), 1U);
    EXPECT_EQ(crowd.settled()[0].used, 15);
    EXPECT_THAT(crowd.page("/metrics"),
                AllOf(HasSubstr("asks_total{outcome=\"granted\"} 1"),
                      HasSubstr("ask_seconds_bucket{le=\"0.005\"} 1"),
                      HasSubstr("ask_seconds_bucket{le=\"0.001\"} 0"), HasSubstr("store_up 0")));
}

TEST(Sharing, WhatTheStoreRefusesIsRefusedWithItsNumbersAndComesBackHere) {
    SharingCrowd crowd(shared());
    const auto a = crowd.ask(kBody, "k");
    crowd.told(a, What::kRefused, 1, 321, seconds(7));
    EXPECT_EQ(crowd[a].seen.record().status, 429);
    EXPECT_THAT(crowd[a].seen.raw,
                AllOf(HasSubstr("Retry-After: 7\r\n"), HasSubstr("gateway_rejected"),
                      HasSubstr("the budget of this key is 1000 tokens in 60 s; 321 are left, and "
                                "this request may need 632")));
    EXPECT_TRUE(crowd.settled().empty()) << "nothing was set aside there";
    const auto b = crowd.ask(kBody, "k");
    EXPECT_EQ(crowd.asked.size(), 2U) << "its own gateway does not count what was refused";
    crowd.told(b, What::kRefused, 0, 0, std::nullopt);
    EXPECT_THAT(crowd[b].seen.raw,
                AllOf(HasSubstr("x-should-retry: false"), HasSubstr("the budget of all is 5000")));
}

TEST(Sharing, WhatDoesNotFitItsOwnGatewaysCountsAsksNobody) {
    SharingCrowd crowd(shared());
    crowd.told(crowd.ask(kBody, "k"), What::kGranted);
    const auto b = crowd.ask(kBody, "k");
    EXPECT_EQ(crowd[b].seen.record().status, 429);
    EXPECT_EQ(crowd.asked.size(), 1U);
}

TEST(Sharing, WithoutTheStoreFailOpenLetsThisGatewaysCountsDecide) {
    SharingCrowd crowd(shared());
    const auto a = crowd.ask(kBody, "k");
    crowd.told(a, What::kLost);
    EXPECT_TRUE(crowd.passed_on(a));
    EXPECT_EQ(crowd[crowd.ask(kBody, "k")].seen.record().status, 429) << "its own limit holds";
    crowd.answer(a, "stop", R"(,"usage":{"prompt_tokens":30,"completion_tokens":2})");
    ASSERT_EQ(crowd.settled().size(), 1U) << "the store hears of it when it is back";
    EXPECT_EQ(crowd.settled()[0].used, 32);
    EXPECT_THAT(crowd.page("/metrics"), HasSubstr("outcome=\"lost_passed\"} 1"));
}

TEST(Sharing, WithoutTheStoreFailClosedRefusesAndNamesIt) {
    SharingCrowd crowd(shared(SharedStore::OnLoss::kClosed));
    crowd.gateway.store_is({.up = false, .trouble = "LOADING it is", .kept = 3, .dropped = 1});
    const auto a = crowd.ask(kBody);
    crowd.told(a, What::kLost);
    EXPECT_EQ(crowd[a].seen.record().status, 503);
    EXPECT_THAT(crowd[a].seen.raw,
                AllOf(HasSubstr("Retry-After: 5\r\n"), HasSubstr("gateway_rejected"),
                      HasSubstr("the store of shared budgets at store:6379/0 does not answer: "
                                "LOADING it is; on_loss is fail_closed")));
    ASSERT_EQ(crowd.settled().size(), 1U) << "the store may have set it aside";
    EXPECT_EQ(crowd.settled()[0].used, 0);
    EXPECT_THAT(
        crowd.page("/fullstop/status"),
        AllOf(
            HasSubstr(
                R"("store":"store:6379/0","status":"down","detail":"LOADING it is","on_loss":"fail_closed")"),
            HasSubstr(R"("settlements_kept":3,"settlements_dropped":1)")));
    EXPECT_THAT(crowd.page("/metrics"),
                AllOf(HasSubstr("outcome=\"lost_refused\"} 1"), HasSubstr("settlements_kept 3"),
                      HasSubstr("dropped_total 1")));
}

TEST(Sharing, AClientThatLeavesWhileTheStoreIsAskedIsSettledAndNeverPassedOn) {
    SharingCrowd crowd(shared());
    const auto a = crowd.ask(kBody, "k");
    crowd.leave(a);
    ASSERT_EQ(crowd.settled().size(), 1U);
    EXPECT_EQ(crowd.settled()[0].used, 0);
    crowd.told(a, What::kGranted);
    EXPECT_FALSE(crowd.passed_on(a));
    EXPECT_EQ(crowd.settled().size(), 1U);
    EXPECT_EQ(crowd.records.size(), 1U);
    crowd.told(crowd.ask(kBody, "k"), What::kGranted);
    EXPECT_EQ(crowd.asked.size(), 3U) << "its own gateway's count came back too";
}

TEST(Sharing, TheWaitForTheStoreCountsAndItsLimitHolds) {
    Policy policy = shared();
    policy.deadlines.queue_wait = seconds(2);
    SharingCrowd crowd(policy);
    const auto a = crowd.ask(kBody);
    crowd.pass(seconds(3));
    EXPECT_EQ(crowd[a].seen.record().status, 503);
    EXPECT_THAT(crowd[a].seen.raw, HasSubstr("queue_wait"));
    EXPECT_EQ(crowd.settled().size(), 1U);
    EXPECT_EQ(crowd.timers(), 0U);
}

TEST(Sharing, ADrainEndsThoseThatStillAsk) {
    SharingCrowd crowd(shared());
    const auto a = crowd.ask(kBody);
    crowd.act([&](Actions& out) { crowd.gateway.drain(crowd.now, out); });
    EXPECT_FALSE(crowd.gateway.drained());
    crowd.pass(seconds(31));
    EXPECT_TRUE(crowd.over(a));
    EXPECT_TRUE(crowd.gateway.drained());
    EXPECT_EQ(crowd.settled().size(), 1U);
}

TEST(Sharing, AnotherConfigurationMayEndTheSharing) {
    SharingCrowd crowd(shared(SharedStore::OnLoss::kClosed));
    const auto a = crowd.ask(kBody, "one");
    Policy alone = shared();
    alone.budgets.shared.reset();
    crowd.act([&](Actions& out) { crowd.gateway.configure(alone, crowd.now, out); });
    EXPECT_TRUE(crowd.passed_on(crowd.ask(kBody, "two")));
    crowd.told(a, What::kLost);
    EXPECT_TRUE(crowd.passed_on(a)) << "there is no fail_closed any more";
    EXPECT_EQ(crowd.asked.size(), 1U);
    EXPECT_THAT(crowd.page("/fullstop/status"), HasSubstr(R"("shared_budgets":null)"));
    EXPECT_THAT(crowd.page("/metrics"), Not(HasSubstr("budget_store_up")));
}

}  // namespace
}  // namespace fullstop::gateway
