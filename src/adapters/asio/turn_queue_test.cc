// What one event leads to is done in its turn, in order, and nobody is called from inside himself.
#include "adapters/asio/turn_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "adapters/asio/limits.h"

namespace fullstop::adapters::asio {
namespace {

struct Someone final : TurnQueue::Member {
    Someone(TurnQueue& queue, std::string called, std::string& log)
        : Member(queue), name(std::move(called)), said(log) {}
    void take_turn() override {
        EXPECT_FALSE(inside) << name << " is called from inside itself";
        inside = true;
        said += name;
        if (then) then();
        inside = false;
    }
    using Member::due;
    std::string name;
    std::string& said;
    std::function<void()> then;
    bool inside = false;
};

class TurnQueueTest : public ::testing::Test {
protected:
    std::string said;
    std::vector<std::function<void()>> later;
    TurnQueue queue{[this](std::function<void()> work) { later.push_back(std::move(work)); }};
    Someone a{queue, "a", said}, b{queue, "b", said};
};

TEST_F(TurnQueueTest, WorkGivenWhenNothingRunsIsDoneAtOnce) {
    a.due();
    EXPECT_EQ(said, "a");
}

TEST_F(TurnQueueTest, WorkGivenInsideWaitsUntilWhatRunsHasReturned) {
    queue.run([&] {
        b.due();
        a.due();
        said += "-";
    });
    EXPECT_EQ(said, "-ba");
}

TEST_F(TurnQueueTest, WhoGivesHimselfWorkTakesAnotherTurnBehindTheOthers) {
    int left = 2;
    a.then = [&] {
        if (left-- > 0) a.due();
        if (left == 1) b.due();
    };
    a.due();
    EXPECT_EQ(said, "aaba");
}

TEST_F(TurnQueueTest, SeveralPiecesOfWorkForOneAreOneTurn) {
    queue.run([&] {
        a.due();
        a.due();
        b.due();
        a.due();
    });
    EXPECT_EQ(said, "ab");
}

TEST_F(TurnQueueTest, WhoGoesAwayTakesNoTurn) {
    queue.run([&] {
        Someone gone(queue, "gone", said);
        gone.due();
        a.due();
    });
    EXPECT_EQ(said, "a");
}

TEST_F(TurnQueueTest, AnEndlessRowLetsTheLoopComeBetween) {
    a.then = [&] { a.due(); };
    a.due();
    EXPECT_EQ(said.size(), static_cast<std::size_t>(kMaxTurnsInARow));
    ASSERT_EQ(later.size(), 1U);
    a.then = nullptr;
    later.front()();
    EXPECT_EQ(said.size(), static_cast<std::size_t>(kMaxTurnsInARow) + 1);
}

}  // namespace
}  // namespace fullstop::adapters::asio
