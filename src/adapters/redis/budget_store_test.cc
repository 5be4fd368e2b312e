// Every question is answered once and in time, whatever the store does; what was used reaches it
// once it is there.
#include "adapters/redis/budget_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "adapters/redis/limits.h"
#include "adapters/redis/test_store.h"

namespace fullstop::adapters::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(BudgetStore, GrantsRefusesAndSettles) {
    StoreBench bench;
    bench.reserve(1, 700);
    bench.exchange();
    EXPECT_EQ(bench.answers(), "1 granted");
    EXPECT_TRUE(bench.part.state().up);
    bench.reserve(2, 400);
    bench.now += milliseconds(3);
    bench.exchange();
    ASSERT_EQ(bench.heard.size(), 1U);
    EXPECT_EQ(bench.heard[0].left, 300);
    EXPECT_EQ(bench.heard[0].retry_after, milliseconds(2500));
    EXPECT_EQ(bench.heard[0].took, milliseconds(3));
    EXPECT_EQ(bench.answers(), "2 refused");
    bench.settle(1, 250);
    EXPECT_EQ(bench.part.state().kept, 1U);
    bench.exchange();
    EXPECT_EQ(bench.part.state().kept, 0U);
    EXPECT_EQ(bench.store.spent, 250);
    EXPECT_EQ(bench.store.reserved(), 0);
    EXPECT_TRUE(bench.part.idle());
    EXPECT_THAT(bench.store.seen, ElementsAre("SCRIPT", "EVALSHA", "EVALSHA", "EVALSHA"));
    EXPECT_EQ(bench.store.last_key, "{fullstop}:overall:60000");
    EXPECT_EQ(bench.connects, 1);
}

TEST(BudgetStore, GreetsWithUserPasswordAndDatabase) {
    gateway::SharedStore where = StoreBench::place();
    where.user = "me";
    where.password = "sec\r\nret";
    where.database = 3;
    StoreBench bench(where);
    bench.accept();
    EXPECT_THAT(bench.sent, AllOf(HasSubstr("*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$8\r\nsec\r\nret\r\n"),
                                  HasSubstr("*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n")));
    bench.exchange();
    EXPECT_TRUE(bench.part.state().up);
}

TEST(BudgetStore, AWrongPasswordIsSaidWithoutRepeatingIt) {
    gateway::SharedStore where = StoreBench::place();
    where.password = "secret";
    StoreBench bench(where);
    bench.store.auth_error = "ERR unknown command 'AUTH', with args beginning with: 'secret'";
    bench.reserve(1);
    bench.exchange();
    EXPECT_EQ(bench.answers(), "1 lost");
    EXPECT_THAT(bench.part.state().trouble,
                AllOf(HasSubstr("refuses the user or password (ERR)"), Not(HasSubstr("secret"))));
}

TEST(BudgetStore, AReplyThatNeverComesIsGivenUpInTime) {
    StoreBench bench;
    bench.exchange();
    bench.reserve(1);
    bench.pass(milliseconds(499));
    EXPECT_EQ(bench.answers(), "");
    bench.pass(milliseconds(1));
    EXPECT_EQ(bench.heard.at(0).took, milliseconds(500));
    EXPECT_EQ(bench.answers(), "1 lost");
    EXPECT_THAT(bench.part.state().trouble, HasSubstr("does not answer"));
    bench.reserve(2);
    EXPECT_EQ(bench.answers(), "2 lost") << "while it is known to be away nobody waits";
}

TEST(BudgetStore, AConnectionThatIsNeverMadeIsGivenUpInTimeAndTriedAgain) {
    StoreBench bench;
    EXPECT_EQ(bench.last_connect.timeout, milliseconds(500));
    bench.reserve(1);
    bench.pass(milliseconds(500));
    EXPECT_EQ(bench.answers(), "1 lost");
    int connects = 0;
    std::vector<base::Duration> pauses;
    for (int i = 0; i < 9; ++i) {
        bench.refuse();
        const base::Instant from = bench.now;
        for (connects = bench.connects;
             bench.connects == connects && bench.now - from < seconds(20);)
            bench.pass(milliseconds(100));
        pauses.push_back(bench.now - from);
    }
    EXPECT_THAT(pauses, ElementsAre(milliseconds(100), milliseconds(200), milliseconds(400),
                                    milliseconds(800), milliseconds(1600), milliseconds(3200),
                                    seconds(5), seconds(5), seconds(5)));
    EXPECT_THAT(bench.part.state().trouble, HasSubstr("Connection refused"));
    bench.exchange();
    bench.reserve(2);
    bench.exchange();
    EXPECT_EQ(bench.answers(), "2 granted");
}

TEST(BudgetStore, AConnectionLostInTheMiddleOfAReplyLosesNothing) {
    StoreBench bench;
    bench.exchange();
    bench.pass(seconds(2));
    bench.reserve(1);
    bench.reserve(2);
    bench.deliver();
    bench.hear(6);  // one and a half replies
    bench.break_connection();
    EXPECT_TRUE(bench.connecting())
        << "it was a good connection: the store is tried at once, and the questions wait";
    bench.pass(milliseconds(50));
    bench.exchange();
    EXPECT_EQ(bench.answers(), "1 granted 2 granted");
    EXPECT_EQ(bench.store.reserved(), 200) << "what was asked twice counts once";
    bench.settle(1, 30);
    bench.settle(2, 40);
    bench.deliver();
    bench.break_connection();  // it has heard, we do not know
    bench.pass(seconds(1));
    bench.exchange();
    EXPECT_EQ(bench.store.spent, 70) << "and an end that was told twice counts once";
    EXPECT_EQ(bench.part.state().kept, 0U);
}

TEST(BudgetStore, ErrorRepliesAreALossWithTheirWords) {
    for (const std::string error :
         {"LOADING Redis is loading the dataset in memory",
          "OOM command not allowed when used memory > 'maxmemory'.",
          "READONLY You can't write against a read only replica.", "MOVED 3999 127.0.0.1:6381"}) {
        StoreBench bench;
        bench.exchange();
        bench.store.error = error;
        bench.reserve(1);
        bench.exchange();
        EXPECT_EQ(bench.answers(), "1 lost") << error;
        EXPECT_EQ(bench.part.state().trouble, error);
        EXPECT_FALSE(bench.part.state().up);
        bench.store.error.clear();
        bench.pass(seconds(6));
        bench.exchange();
        bench.reserve(2);
        bench.exchange();
        EXPECT_EQ(bench.answers(), "2 granted") << error;
    }
}

TEST(BudgetStore, FlushedScriptsAreSentAgain) {
    StoreBench bench;
    bench.exchange();
    bench.store.loaded = false;
    bench.reserve(1);
    bench.exchange();
    EXPECT_EQ(bench.answers(), "1 granted");
    EXPECT_THAT(bench.store.seen, ElementsAre("SCRIPT", "EVALSHA", "EVAL"));
    bench.store.loaded = false;
    bench.settle(1, 9);
    bench.exchange();
    EXPECT_EQ(bench.store.spent, 9);
}

TEST(BudgetStore, GarbageAndUnaskedRepliesEndTheConnection) {
    for (const std::string garbage :
         {"HTTP/1.1 400 Bad Request\r\n\r\n", "*1\r\n:1\r\n*1\r\n:1\r\n", "+PONG\r\n",
          "*2147483647\r\n", "$20\r\n"}) {
        StoreBench bench;
        bench.exchange();
        bench.reserve(1);
        bench.sent.clear();
        bench.replies = garbage;
        bench.hear();
        bench.pass(milliseconds(500));
        EXPECT_THAT(bench.answers(), testing::AnyOf("1 lost", "1 granted")) << garbage;
        EXPECT_FALSE(bench.open) << garbage;
        EXPECT_FALSE(bench.part.state().trouble.empty());
    }
}

TEST(BudgetStore, EndsAreKeptWhileTheStoreIsAwayAndToldWhenItIsBack) {
    StoreBench bench;
    bench.exchange();
    bench.reserve(1);
    bench.reserve(2);
    bench.exchange();
    bench.break_connection();
    bench.refuse();
    bench.reserve(3);  // passed on without the store
    EXPECT_EQ(bench.answers(), "1 granted 2 granted 3 lost");
    bench.settle(1, 11);
    bench.settle(3, 33);
    EXPECT_EQ(bench.part.state().kept, 1U + (bench.part.knows(3) ? 1U : 0U));
    bench.pass(seconds(6));
    bench.exchange();
    EXPECT_EQ(bench.store.spent, 44);
    EXPECT_EQ(bench.store.reserved(), 100) << "2 runs on";
    EXPECT_EQ(bench.part.state().kept, 0U);
}

TEST(BudgetStore, WhatWasNeverToldAndUsedNothingIsForgotten) {
    StoreBench bench;
    bench.refuse();
    bench.reserve(1);
    bench.settle(1, 0);
    EXPECT_FALSE(bench.part.knows(1));
    EXPECT_EQ(bench.part.state().kept, 0U);
}

TEST(BudgetStore, TheOldestEndsAreForgottenWhenThereAreTooMany) {
    StoreBench bench;
    bench.refuse();
    for (std::uint64_t id = 1; id <= kMaxKeptSettles + 5; ++id) {
        bench.reserve(id, 1);
        bench.settle(id, 1);
    }
    EXPECT_EQ(bench.part.state().kept, kMaxKeptSettles);
    EXPECT_EQ(bench.part.state().dropped, 5);
    bench.pass(seconds(6));
    bench.exchange();
    EXPECT_EQ(bench.store.spent, static_cast<std::int64_t>(kMaxKeptSettles));
    EXPECT_EQ(bench.part.state().kept, 0U);
}

TEST(BudgetStore, AnEndThatTheStoreNeverTakesDoesNotBlockTheOthersForEver) {
    StoreBench bench;
    bench.exchange();
    bench.reserve(1);
    bench.exchange();
    bench.answers();
    bench.store.error = "WRONGTYPE Operation against a key holding the wrong kind of value";
    bench.settle(1, 5);
    for (int i = 0; i < 10; ++i) {
        bench.exchange();
        bench.pass(seconds(6));
    }
    EXPECT_EQ(bench.part.state().dropped, 1);
    EXPECT_EQ(bench.part.state().kept, 0U);
}

TEST(BudgetStore, LongAnswersAreRenewedAndAStoreThatForgotHearsOfThemAgain) {
    StoreBench bench;
    bench.exchange();
    bench.reserve(1);
    bench.exchange();
    const int before = bench.store.commands;
    for (int i = 0; i < 12; ++i) {
        bench.pass(seconds(5));
        bench.exchange();
    }
    EXPECT_EQ(bench.store.commands - before, 3) << "every third of the lease";
    bench.store.forget();
    bench.break_connection();
    bench.pass(seconds(1));
    bench.exchange();
    EXPECT_EQ(bench.store.reserved(), 100);
    bench.settle(1, 60);
    bench.exchange();
    EXPECT_EQ(bench.store.spent, 60);
    bench.pass(seconds(60));
    bench.exchange();
    EXPECT_EQ(bench.store.reserved(), 0);
}

TEST(BudgetStore, ARetiredStoreIsDoneWhenAllIsSettledOrItIsAway) {
    StoreBench bench;
    bench.exchange();
    bench.reserve(1);
    bench.exchange();
    bench.reserve(2);
    bench.answers();
    bench.act([&](net::Actions& out) { bench.part.retire(bench.now, out); });
    EXPECT_EQ(bench.answers(), "2 lost");
    bench.settle(2, 0);
    bench.exchange();
    EXPECT_FALSE(bench.part.done());
    bench.settle(1, 7);
    bench.exchange();
    EXPECT_TRUE(bench.part.done());
    EXPECT_EQ(bench.store.spent, 7);

    StoreBench away;
    away.exchange();
    away.reserve(1);
    away.exchange();
    away.act([&](net::Actions& out) { away.part.retire(away.now, out); });
    away.break_connection();
    away.settle(1, 7);
    EXPECT_FALSE(away.part.done());
    if (away.connecting()) away.refuse();
    away.pass(seconds(6));
    if (away.connecting()) away.refuse();
    EXPECT_TRUE(away.part.done());
    EXPECT_EQ(away.part.state().dropped, 1);
}

/// Connections that break anywhere, stores that are slow, away, forget their scripts or all they
/// know: each question is answered once within the timeout, and in the end the store holds nothing
/// and has counted what was used: twice at most where it never said that it knew of it, and heard
/// of the end on a connection that broke.
RC_GTEST_PROP(BudgetStoreProperty, EveryQuestionIsAnsweredOnceAndEveryEndArrives, ()) {
    StoreBench bench;
    bench.store.limit = 1'000'000;
    std::map<std::uint64_t, base::Instant> asked;
    std::vector<std::uint64_t> running;
    std::uint64_t last = 0;
    std::int64_t used = 0;
    const auto listen = [&] {
        for (const auto& each : std::exchange(bench.heard, {})) {
            RC_ASSERT(asked.contains(each.id));
            RC_ASSERT(each.took <= milliseconds(500));
            RC_ASSERT(each.what != gateway::StoreAnswer::What::kRefused);
            asked.erase(each.id);
            running.push_back(each.id);
        }
        for (const auto& [id, at] : asked) RC_ASSERT(bench.now - at < milliseconds(500));
    };
    for (int i = 0; i < 300; ++i) {
        switch (*rc::gen::inRange(0, 12)) {
            case 0:
            case 1:
            case 2:
                ++last;
                asked[last] = bench.now;
                bench.reserve(last, 100);
                break;
            case 3:
            case 4:
                if (!running.empty()) {
                    const std::int64_t tokens = *rc::gen::inRange<std::int64_t>(0, 101);
                    used += tokens;
                    bench.settle(running.front(), tokens);
                    running.erase(running.begin());
                }
                break;
            case 5:
                if (bench.open) bench.break_connection();
                break;
            case 6:
                if (bench.connecting()) bench.refuse();
                break;
            case 7: bench.store.loaded = false; break;
            case 8: bench.pass(milliseconds(*rc::gen::inRange(1, 3000))); break;
            case 9:
                if (bench.connecting()) bench.accept();
                break;
            default: bench.deliver(); bench.hear(*rc::gen::inRange<std::size_t>(1, 200));
        }
        // The store reads on, but not always.
        if (*rc::gen::inRange(0, 3) > 0) bench.deliver(), bench.hear();
        listen();
    }
    for (const std::uint64_t id : running) bench.settle(id, 1), ++used;
    running.clear();
    for (int i = 0; i < 5; ++i) {
        bench.pass(seconds(6));
        bench.exchange();
        listen();
        for (const std::uint64_t id : std::exchange(running, {})) bench.settle(id, 1), ++used;
    }
    RC_ASSERT(asked.empty());
    RC_ASSERT(bench.part.state().kept == 0U);
    RC_ASSERT(bench.part.state().dropped == 0);
    RC_ASSERT(bench.store.reserved() == 0);
    RC_ASSERT(bench.store.spent == used + bench.store.twice);
}

}  // namespace
}  // namespace fullstop::adapters::redis
