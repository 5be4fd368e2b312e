// Each clock runs from its own beginning and ends by its own rule.
#include "gateway/ending/deadlines.h"

#include <gtest/gtest.h>

namespace fullstop::gateway {
namespace {

using std::chrono::seconds;

constexpr base::Instant kStart{seconds(50)};
const Deadlines kAll{.queue_wait = seconds(10),
                     .first_token = seconds(20),
                     .idle = seconds(30),
                     .total = seconds(100)};

TEST(Clocks, WhileItWaitsOnlyTheQueueAndTheTotalCount) {
    const Clocks clocks(kAll, true, kStart);
    const auto next = clocks.next(kStart + seconds(4));
    ASSERT_TRUE(next);
    EXPECT_EQ(next->limit, Limit::kQueueWait);
    EXPECT_EQ(next->at, kStart + seconds(10));
    EXPECT_EQ(next->elapsed, seconds(4));
    EXPECT_EQ(Clocks({.queue_wait = {}, .first_token = seconds(1), .idle = seconds(1), .total = {}},
                     true, kStart)
                  .next(kStart),
              std::nullopt);
}

TEST(Clocks, TheFirstTokenIsCountedFromTheUpstreamsTurn) {
    Clocks clocks(kAll, true, kStart);
    clocks.dispatched(kStart + seconds(8));
    EXPECT_EQ(clocks.queued(kStart + seconds(50)), seconds(8));
    EXPECT_EQ(clocks.next(kStart)->limit, Limit::kFirstToken);
    EXPECT_EQ(clocks.next(kStart)->at, kStart + seconds(28));
    clocks.moved(kStart + seconds(25));  // bytes that are no token
    EXPECT_EQ(clocks.next(kStart)->at, kStart + seconds(28));
    clocks.first_token();
    EXPECT_EQ(clocks.next(kStart)->limit, Limit::kIdle);
    EXPECT_EQ(clocks.next(kStart)->at, kStart + seconds(55));
}

TEST(Clocks, AnAnswerInOnePieceHasNoFirstToken) {
    Clocks clocks(kAll, false, kStart);
    clocks.dispatched(kStart);
    EXPECT_EQ(clocks.next(kStart)->limit, Limit::kIdle);
}

TEST(Clocks, TheTotalCountsFromArrivalWhateverMoves) {
    Clocks clocks(kAll, true, kStart);
    clocks.dispatched(kStart + seconds(9));
    clocks.first_token();
    clocks.moved(kStart + seconds(95));
    EXPECT_EQ(clocks.next(kStart)->limit, Limit::kTotal);
    EXPECT_EQ(clocks.next(kStart)->at, kStart + seconds(100));
}

TEST(Clocks, WhoGoesBackToTheQueueHasWaitedSinceItsArrival) {
    Clocks clocks(kAll, true, kStart);
    clocks.dispatched(kStart + seconds(1));
    clocks.back_in_queue();
    EXPECT_EQ(clocks.next(kStart + seconds(5))->limit, Limit::kQueueWait);
    EXPECT_EQ(clocks.queued(kStart + seconds(5)), seconds(5));
}

}  // namespace
}  // namespace fullstop::gateway
