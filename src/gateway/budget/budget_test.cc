// Windows of tokens: nothing overshoots, what was not used comes back, and a refusal says when to
// come again.
#include "gateway/budget/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <deque>

namespace fullstop::gateway {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr base::Instant kStart{seconds(100'000)};

TEST(Budget, WhatIsReservedIsGoneAndWhatWasNotUsedComesBack) {
    Budget budget({.overall = TokenWindow{1000, seconds(60)}, .per_key = {}, .routes = {}});
    EXPECT_FALSE(budget.reserve("a", "/v1", 600, kStart));
    const auto refusal = budget.reserve("b", "/v1", 600, kStart);
    ASSERT_TRUE(refusal);
    EXPECT_THAT(refusal->message,
                HasSubstr("the budget of all is 1000 tokens in 60 s; 400 are left, "
                          "and this request may need 600"));
    EXPECT_TRUE(refusal->retry_after);
    budget.settle("a", "/v1", 600, 100, kStart + seconds(1));
    EXPECT_FALSE(budget.reserve("b", "/v1", 600, kStart + seconds(1)));
}

TEST(Budget, AWindowMovesOn) {
    Budget budget({.overall = TokenWindow{1000, seconds(60)}, .per_key = {}, .routes = {}});
    ASSERT_FALSE(budget.reserve("a", "/v1", 1000, kStart));
    budget.settle("a", "/v1", 1000, 1000, kStart);
    const auto refusal = budget.reserve("a", "/v1", 500, kStart + seconds(30));
    ASSERT_TRUE(refusal && refusal->retry_after);
    EXPECT_NEAR(base::to_seconds(*refusal->retry_after), 30, 1.5);
    EXPECT_TRUE(budget.reserve("a", "/v1", 500, kStart + seconds(58)));
    EXPECT_FALSE(budget.reserve("a", "/v1", 500, kStart + seconds(30) + *refusal->retry_after))
        << "when it said it would fit";
}

TEST(Budget, WhatIsLargerThanTheBudgetIsToldNotToComeAgain) {
    Budget budget({.overall = {}, .per_key = TokenWindow{100, seconds(60)}, .routes = {}});
    const auto refusal = budget.reserve("", "/v1", 101, kStart);
    ASSERT_TRUE(refusal);
    EXPECT_FALSE(refusal->retry_after);
    EXPECT_THAT(refusal->message, HasSubstr("the budget of requests without a key"));
}

TEST(Budget, KeysAndRoutesAreCountedApart) {
    Budget budget({.overall = {},
                   .per_key = TokenWindow{100, seconds(60)},
                   .routes = {{"/v1/completions", TokenWindow{150, seconds(60)}}}});
    EXPECT_FALSE(budget.reserve("a", "/v1/completions", 100, kStart));
    EXPECT_TRUE(budget.reserve("a", "/v1/chat/completions", 1, kStart));
    EXPECT_FALSE(budget.reserve("b", "/v1/chat/completions", 100, kStart));
    const auto refusal = budget.reserve("c", "/v1/completions", 60, kStart);
    ASSERT_TRUE(refusal);
    EXPECT_THAT(refusal->message, HasSubstr("the budget of /v1/completions"));
    EXPECT_FALSE(budget.reserve("c", "/v1/chat/completions", 100, kStart))
        << "a refusal sets nothing aside in the other windows";
}

TEST(Budget, AnotherConfigurationKeepsWhatWasUsed) {
    Budget budget({.overall = TokenWindow{1000, seconds(60)}, .per_key = {}, .routes = {}});
    ASSERT_FALSE(budget.reserve("a", "/v1", 900, kStart));
    budget.configure({.overall = TokenWindow{1200, seconds(60)}, .per_key = {}, .routes = {}});
    EXPECT_TRUE(budget.reserve("a", "/v1", 400, kStart));
    EXPECT_FALSE(budget.reserve("a", "/v1", 300, kStart));
}

/// Whatever comes and goes: what was used within any window never exceeds the limit, when no answer
/// uses more than was reserved for it.
RC_GTEST_PROP(BudgetProperty, NoWindowIsOvershot, ()) {
    const std::int64_t limit = *rc::gen::inRange(100, 10'000);
    const auto window = seconds(*rc::gen::inRange(60, 600));
    Budget budget({.overall = TokenWindow{limit, window}, .per_key = {}, .routes = {}});
    struct Open {
        std::int64_t reserved;
        base::Instant ends;
    };
    std::deque<Open> open;
    std::vector<std::pair<base::Instant, std::int64_t>> used;
    base::Instant now = kStart;
    for (int i = 0; i < 300; ++i) {
        now += std::chrono::milliseconds(*rc::gen::inRange(0, 20'000));
        while (!open.empty() && open.front().ends <= now) {
            const std::int64_t tokens =
                *rc::gen::inRange<std::int64_t>(0, open.front().reserved + 1);
            budget.settle("a", "/v1", open.front().reserved, tokens, now);
            used.emplace_back(now, tokens);
            open.pop_front();
        }
        const std::int64_t wanted = *rc::gen::inRange<std::int64_t>(1, limit);
        if (!budget.reserve("a", "/v1", wanted, now)) open.push_back({wanted, now + seconds(5)});
        // The window moves in steps: an entry leaves it at most one step early.
        std::int64_t sum = 0;
        for (const auto& [at, tokens] : used)
            if (now - at < window - window / kWindowSteps) sum += tokens;
        RC_ASSERT(sum <= limit);
    }
}

}  // namespace
}  // namespace fullstop::gateway
