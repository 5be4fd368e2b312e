// Who gets room, who has to let go, and in which order.
#include "net/memory_budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace fullstop::net {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;
constexpr std::size_t kLimit = 64 * kMiB;
constexpr base::Instant kStart{std::chrono::hours(1)};
constexpr base::Instant kLater = kStart + kIdleHold;

/// Holders that can be dropped; says in which order they were.
struct Crowd {
    MemoryBudget budget{kLimit};
    std::string order;
    std::vector<std::unique_ptr<MemoryBudget::Hold>> holds;

    MemoryBudget::Hold& add(char name) {
        holds.push_back(std::make_unique<MemoryBudget::Hold>());
        MemoryBudget::Hold* hold = holds.back().get();
        *hold = MemoryBudget::Hold(budget, [this, hold, name] {
            order += name;
            hold->release();
        });
        return *hold;
    }
};

TEST(MemoryBudget, CountsWhatIsHeldAndWhatIsLetGo) {
    MemoryBudget budget(kLimit);
    {
        MemoryBudget::Hold a(budget), b(budget);
        EXPECT_TRUE(a.resize(3 * kMiB, kStart) && b.resize(5 * kMiB, kStart) &&
                    a.resize(kMiB, kStart));
        EXPECT_EQ(budget.held(), 6 * kMiB);
        MemoryBudget::Hold c = std::move(a);
        EXPECT_EQ(budget.held(), 6 * kMiB);
        b.release();
        EXPECT_EQ(budget.held(), c.bytes());
    }
    EXPECT_EQ(budget.held(), 0U);
}

TEST(MemoryBudget, TheLargestThatIsIdleGoesFirstAndTheOneThatMovesStays) {
    Crowd crowd;
    for (const char name : {'a', 'b', 'c', 'd'})
        EXPECT_TRUE(crowd.add(name).resize((name == 'b' ? 8U : 12U) * kMiB, kStart));
    crowd.holds[0]->moved(kMovedBytes, kLater);
    crowd.holds[2]->moved(kMovedBytes - 1, kLater);  // a trickle is no progress
    MemoryBudget::Hold newcomer(crowd.budget);
    EXPECT_TRUE(newcomer.resize(5 * kMiB, kLater));
    EXPECT_EQ(crowd.order, "d")
        << "of two alike the later one; one is enough, with something to spare";
    EXPECT_TRUE(newcomer.resize(20 * kMiB, kLater));
    EXPECT_EQ(crowd.order, "dc");
    EXPECT_FALSE(newcomer.resize(40 * kMiB, kLater)) << "no room even without b";
    EXPECT_EQ(crowd.order, "dcb");
    EXPECT_EQ(crowd.budget.dropped(), 3U);
}

TEST(MemoryBudget, WhoNeedsLittleDisplacesTheLargestEvenOfThoseThatMove) {
    Crowd crowd;
    for (const char name : {'a', 'b', 'c'})
        EXPECT_TRUE(crowd.add(name).resize((name == 'b' ? 14U : 12U) * kMiB, kStart));
    std::vector<MemoryBudget::Hold> small;
    std::size_t got_in = 0;
    while (crowd.order.empty() && got_in < 1000) {
        small.emplace_back(crowd.budget);
        ASSERT_TRUE(small.back().resize(kSmallHoldBytes, kStart));
        ++got_in;
    }
    EXPECT_EQ(crowd.order, "b");
    EXPECT_EQ(got_in, (kLimit - 38 * kMiB) / kSmallHoldBytes + 1);
}

TEST(MemoryBudget, WhoAsksForMostIsRefusedWhenNobodyIsIdle) {
    Crowd crowd;
    for (const char name : {'a', 'b', 'c'}) EXPECT_TRUE(crowd.add(name).resize(15 * kMiB, kStart));
    EXPECT_FALSE(crowd.holds[0]->resize(19 * kMiB, kStart));
    EXPECT_EQ(crowd.holds[0]->bytes(), 15 * kMiB);
    EXPECT_EQ(crowd.order, "");
    EXPECT_TRUE(crowd.add('d').resize(14 * kMiB, kStart)) << "it is not the largest";
    EXPECT_EQ(crowd.budget.refused(), 1U);
}

TEST(MemoryBudget, BodiesUnderWayAreNotDroppedAndLeaveRoomForSmallOnes) {
    MemoryBudget budget(kLimit);
    std::vector<MemoryBudget::Hold> under_way(8);
    std::size_t taken = 0;
    for (auto& each : under_way) {
        each = MemoryBudget::Hold(budget);
        taken += each.resize(8 * kMiB, kStart) ? 1 : 0;
    }
    EXPECT_EQ(taken, 6U) << "three quarters";
    EXPECT_FALSE(budget.could_hold(8 * kMiB));
    EXPECT_TRUE(budget.could_hold(kSmallHoldBytes));
    MemoryBudget::Hold small(budget);
    EXPECT_TRUE(small.resize(kSmallHoldBytes, kLater));
}

TEST(MemoryBudget, ManySmallHoldersThatDoNotMoveMakeRoomForOneThatDoes) {
    Crowd crowd;
    for (std::size_t i = 0; i < kLimit / kSmallHoldBytes; ++i)
        ASSERT_TRUE(crowd.add('s').resize(kSmallHoldBytes, kStart));
    MemoryBudget::Hold honest(crowd.budget,
                              [] { FAIL() << "who moves is dropped for those who do not"; });
    for (std::size_t bytes = kMiB; bytes <= 4 * kMiB; bytes += kMiB) {
        while (!honest.resize(bytes, kLater)) ASSERT_LE(crowd.order.size(), crowd.holds.size());
        honest.moved(kMiB, kLater);
    }
    EXPECT_LE(crowd.budget.held(), kLimit);
}

TEST(MemoryBudget, WhoIsDroppedMayEndOthersAndAskItself) {
    MemoryBudget budget(kLimit);
    auto other = std::make_unique<MemoryBudget::Hold>(budget, [] {});
    std::unique_ptr<MemoryBudget::Hold> victim;
    MemoryBudget::Hold third(budget);
    victim = std::make_unique<MemoryBudget::Hold>(budget, [&] {
        other.reset();
        EXPECT_TRUE(third.resize(kSmallHoldBytes, kLater));
        victim.reset();
    });
    EXPECT_TRUE(other->resize(10 * kMiB, kStart) && victim->resize(30 * kMiB, kStart));
    MemoryBudget::Hold newcomer(budget);
    EXPECT_TRUE(newcomer.resize(20 * kMiB, kLater));
    EXPECT_EQ(budget.held(), 20 * kMiB + kSmallHoldBytes);
}

}  // namespace
}  // namespace fullstop::net
