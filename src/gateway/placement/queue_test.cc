// Order of waiting: classes, clients, age; and that nobody starves, whatever comes behind.
#include "gateway/placement/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>

namespace fullstop::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr base::Instant kStart{std::chrono::seconds(1000)};

Ticket ticket(std::uint64_t id, Priority priority = Priority::kNormal, std::string client = "",
              base::Instant arrived = kStart) {
    return {.id = id,
            .priority = priority,
            .client = std::move(client),
            .arrived = arrived,
            .tokens = 100,
            .bytes = 10};
}

/// Takes up to `count` of them, and says which.
std::vector<std::uint64_t> serve(Queue& queue, serving::TokenCounters& used, base::Instant now,
                                 std::size_t count) {
    std::vector<std::uint64_t> out;
    queue.offer(now, used, [&](const Ticket& each, bool) {
        if (out.size() == count) return Queue::Reply::kNobody;
        out.push_back(each.id);
        used.charge(each.client, each.tokens);
        return Queue::Reply::kTaken;
    });
    return out;
}

TEST(Queue, FirstComeFirstServedWithinAClassAndHigherClassesFirst) {
    Queue queue({});
    serving::TokenCounters used;
    queue.push(ticket(1, Priority::kBatch));
    queue.push(ticket(2));
    queue.push(ticket(3, Priority::kInteractive));
    queue.push(ticket(4));
    EXPECT_EQ(queue.size(Priority::kNormal), 2U);
    EXPECT_THAT(serve(queue, used, kStart, 9), ElementsAre(3, 2, 4, 1));
    EXPECT_EQ(queue.size(), 0U);
    EXPECT_EQ(queue.tokens(), 0);
}

TEST(Queue, WhoComesBackGetsThePlaceOfItsArrival) {
    Queue queue({});
    serving::TokenCounters used;
    queue.push(ticket(1, Priority::kNormal, "", kStart));
    queue.push(ticket(2, Priority::kNormal, "", kStart + std::chrono::seconds(2)));
    queue.push(ticket(3, Priority::kNormal, "", kStart + std::chrono::seconds(1)));
    EXPECT_THAT(serve(queue, used, kStart + std::chrono::seconds(2), 9), ElementsAre(1, 3, 2));
}

TEST(Queue, TheClientWithTheFewestTokensIsNext) {
    Queue queue({});
    serving::TokenCounters used;
    for (const auto* client : {"a", "a", "a", "b"}) used.comes(client);
    used.charge("a", 150);
    for (const std::uint64_t id : {1, 2, 3}) queue.push(ticket(id, Priority::kNormal, "a"));
    queue.push(ticket(4, Priority::kNormal, "b"));
    queue.push(ticket(5, Priority::kNormal, "b"));
    EXPECT_THAT(serve(queue, used, kStart, 9), ElementsAre(4, 5, 1, 2, 3))
        << "b has 0, then 100; a has 150";
}

TEST(Queue, AClientThatIdledEarnsNoCredit) {
    serving::TokenCounters used;
    used.comes("busy");
    used.charge("busy", 10'000);
    used.settle("busy", 10'000, 9'000);
    used.charge("busy", 5'000);
    used.comes("new");
    EXPECT_EQ(used.used("new"), 9'000) << "what runs is an estimate, and lifts nobody";
}

TEST(Queue, WhoeverWaitsLongMovesUpAndIsServedByAgeAtTheEnd) {
    Queue queue({.ageing = std::chrono::seconds(10)});
    serving::TokenCounters used;
    queue.push(ticket(1, Priority::kBatch, "", kStart));
    EXPECT_EQ(queue.next_overdue(kStart), kStart + std::chrono::seconds(30));
    Queue early = queue;
    early.push(ticket(2, Priority::kInteractive, "", kStart + std::chrono::seconds(8)));
    EXPECT_THAT(serve(early, used, kStart + std::chrono::seconds(9), 9), ElementsAre(2, 1));
    queue.push(ticket(2, Priority::kInteractive, "", kStart + std::chrono::seconds(29)));
    EXPECT_THAT(serve(queue, used, kStart + std::chrono::seconds(30), 9), ElementsAre(1, 2));
}

TEST(Queue, ALimitIsNamedWithItsNumbers) {
    Queue queue({.requests = 2, .tokens = 250});
    EXPECT_FALSE(queue.full(ticket(1)));
    queue.push(ticket(1));
    Ticket large = ticket(2);
    large.tokens = 151;
    EXPECT_THAT(queue.full(large).value_or(""),
                HasSubstr("about 100 tokens wait already, and this one is 151 (limit 250)"));
    queue.push(ticket(2));
    EXPECT_THAT(queue.full(ticket(3)).value_or(""), HasSubstr("2 requests wait already (limit 2)"));
    EXPECT_TRUE(queue.remove(1));
    EXPECT_FALSE(queue.remove(1));
    EXPECT_FALSE(queue.full(ticket(3)));
}

TEST(Queue, OneRequestLargerThanTheLimitMayWaitAlone) {
    Queue queue({.requests = 2, .tokens = 50});
    EXPECT_FALSE(queue.full(ticket(1)));
}

TEST(Queue, WhatHasNoRoomStaysAndTheNextIsOffered) {
    Queue queue({});
    serving::TokenCounters used;
    for (const std::uint64_t id : {1, 2, 3}) queue.push(ticket(id));
    std::map<std::uint64_t, int> offered;
    queue.offer(kStart, used, [&](const Ticket& each, bool) {
        ++offered[each.id];
        return each.id == 2 ? Queue::Reply::kTaken : Queue::Reply::kNoRoom;
    });
    EXPECT_EQ(queue.size(), 2U);
    EXPECT_TRUE(queue.contains(1) && queue.contains(3) && !queue.contains(2));
    EXPECT_EQ(offered[1], 1) << "refused once is refused for this time";
}

/// However many interactive requests of other clients keep coming, faster than they are served: a
/// batch request is served.
RC_GTEST_PROP(QueueProperty, NobodyStarves, ()) {
    const auto ageing = std::chrono::seconds(*rc::gen::inRange(1, 60));
    const int per_second = *rc::gen::inRange(1, 4);  // one is served each second
    const auto victim_class =
        *rc::gen::element(Priority::kInteractive, Priority::kNormal, Priority::kBatch);
    const int before = *rc::gen::inRange(0, 50);
    Queue queue({.ageing = ageing});
    serving::TokenCounters used;
    used.comes("victim");
    used.charge("victim", 1'000'000'000);  // it has had far more than all others
    used.comes("other");
    std::uint64_t next = 100;
    for (int i = 0; i < before; ++i)
        queue.push(ticket(next++, Priority::kInteractive, "other", kStart));
    queue.push(ticket(1, victim_class, "victim", kStart));
    // Overdue after its periods; then only those that came before it are older: what was there, and
    // nothing that came since.
    const int periods = static_cast<int>(victim_class) + 1;
    const int bound = static_cast<int>(ageing.count()) * periods + before + 2;
    int second = 0;
    for (; queue.contains(1); ++second) {
        RC_ASSERT(second <= bound);
        const base::Instant now = kStart + std::chrono::seconds(second);
        for (int i = 0; i < per_second; ++i)
            queue.push(ticket(next++, Priority::kInteractive, "other", now));
        serve(queue, used, now, 1);
    }
}

/// Tokens are shared evenly between clients that always have something waiting, whatever their
/// requests' sizes.
RC_GTEST_PROP(QueueProperty, ClientsShareTokensNotRequests, ()) {
    const std::int64_t large = *rc::gen::inRange(100, 2000), small = *rc::gen::inRange(10, 100);
    Queue queue({.requests = 10'000, .tokens = 1'000'000'000, .ageing = std::chrono::hours(100)});
    serving::TokenCounters used;
    std::map<std::string, std::int64_t> got;
    std::uint64_t id = 1;
    const auto add = [&](const std::string& client, std::int64_t tokens) {
        used.comes(client);
        Ticket each = ticket(id++, Priority::kNormal, client);
        each.tokens = tokens;
        queue.push(each);
    };
    for (int i = 0; i < 3; ++i) add("large", large), add("small", small);
    for (int step = 0; step < 2000; ++step) {
        std::string served;
        queue.offer(kStart, used, [&](const Ticket& each, bool) {
            if (!served.empty()) return Queue::Reply::kNobody;
            served = each.client;
            got[each.client] += each.tokens;
            used.charge(each.client, each.tokens);
            return Queue::Reply::kTaken;
        });
        used.gone(served);
        add(served, served == "large" ? large : small);
    }
    RC_ASSERT(std::abs(got["large"] - got["small"]) <= 2 * large);
}

}  // namespace
}  // namespace fullstop::gateway
