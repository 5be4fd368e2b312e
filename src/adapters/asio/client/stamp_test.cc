// Kernel stamps on the monotonic line, with clocks of the test's own: steps of the wall clock must
// never move a stamp.
#include "adapters/asio/client/stamp.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "adapters/asio/client/timer_table.h"

namespace fullstop::adapters::asio {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kWall = 1'800'000'000'000'000'000;

/// Both clocks at `mono`, the wall clock set ahead by `step`.
ClockPair at(base::Duration mono, base::Duration step = 0ns) {
    return {
        .monotonic = base::Instant(mono), .real_ns = kWall + (mono + step).count(), .doubt = 100ns};
}

TEST(StampTest, AStampKeepsItsDistanceFromTheReading) {
    StampConverter converter;
    converter.note(at(1s));
    EXPECT_EQ(converter.convert(kWall + base::Duration(2s).count(), at(2s + 30us)),
              base::Instant(2s));
}

TEST(StampTest, AStampBeforeTheFirstReadingIsRefused) {
    StampConverter converter;
    EXPECT_EQ(converter.convert(kWall, at(1s)), std::nullopt);
}

TEST(StampTest, AStampThatAStepMayHaveMovedIsRefusedAndTheNextIsGoodAgain) {
    for (const base::Duration step :
         {base::Duration(-1h), base::Duration(-1ms), base::Duration(1ms), base::Duration(1h)}) {
        StampConverter converter;
        converter.note(at(1s));
        // Stamped at 1.0 s, then the wall clock steps, then read: the offset differs from that of
        // the last reading.
        EXPECT_EQ(converter.convert(kWall + base::Duration(1s).count(), at(1s + 100us, step)),
                  std::nullopt);
        EXPECT_EQ(
            converter.convert(kWall + (base::Duration(2s) + step).count(), at(2s + 10us, step)),
            base::Instant(2s));
    }
}

TEST(StampTest, AStampIsNeverLaterThanItsReading) {
    StampConverter converter;
    converter.note(at(1s));
    EXPECT_EQ(converter.convert(at(2s).real_ns + 90, at(2s)), base::Instant(2s))
        << "within the doubt of the reading";
    EXPECT_EQ(converter.convert(at(2s).real_ns + 1'000'000, at(2s)), std::nullopt)
        << "beyond it, something is wrong";
}

TEST(StampTest, TheSlewOfTimeKeepingIsNoStep) {
    StampConverter converter;
    for (int second = 1; second < 100; ++second) {
        const base::Duration slewed = base::Duration(second * 100'000);  // 100 parts per million
        const auto stamp =
            converter.convert((at(std::chrono::seconds(second), slewed)).real_ns - 1000,
                              at(std::chrono::seconds(second), slewed));
        if (second > 1) EXPECT_TRUE(stamp.has_value()) << second;
    }
}

TEST(StampTest, BothRealClocksAreReadCloseTogether) {
    const ClockPair pair = read_clock_pair();
    EXPECT_GT(pair.real_ns, 1'600'000'000'000'000'000);
    EXPECT_GE(pair.doubt, 0ns);
}

/// A place that stays behind its timer would be due for ever, and the host would wake for it
/// without end.
TEST(TimerTableTest, WithoutATimerThereIsNothingToWaitFor) {
    const auto at = [](int s) { return base::Instant(std::chrono::seconds(s)); };
    TimerTable table;
    for (int key = 1; key <= 3; ++key) table.set(static_cast<TimerTable::Key>(key), at(10 * key));
    for (TimerTable::Key key = 1; key <= 3; ++key) table.cancel(key);
    EXPECT_EQ(table.next(), std::nullopt);

    table.set(1, at(20));
    table.set(2, at(5));
    table.set(1, at(10));  // moved earlier: its old place stays
    table.cancel(2);
    EXPECT_EQ(table.take_due(at(15)), TimerTable::Key{1});
    EXPECT_EQ(table.next(), std::nullopt);
    table.set(4, at(30));
    EXPECT_EQ(table.next(), at(30));
}

TEST(TimerTableTest, BehavesAsAPlainMapOfMomentsWhateverIsSetMovedAndCancelled) {
    rc::check([] {
        TimerTable table;
        std::map<std::uint64_t, base::Instant> plain;
        const auto steps = *rc::gen::container<std::vector<std::tuple<int, std::uint64_t, int>>>(
            rc::gen::tuple(rc::gen::inRange(0, 3), rc::gen::inRange<std::uint64_t>(0, 6),
                           rc::gen::inRange(0, 50)));
        for (const auto& [what, key, moment] : steps) {
            const base::Instant instant{base::Duration(moment)};
            if (what == 0) {
                table.set(key, instant);
                plain[key] = instant;
            } else if (what == 1) {
                table.cancel(key);
                plain.erase(key);
            } else {
                std::multiset<std::uint64_t> due, expected;
                while (const auto taken = table.take_due(instant)) due.insert(*taken);
                for (const auto& [k, t] : plain)
                    if (t <= instant) expected.insert(k);
                std::erase_if(plain, [&](const auto& entry) { return entry.second <= instant; });
                RC_ASSERT(due == expected);
            }
            const auto earliest =
                std::min_element(plain.begin(), plain.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; });
            if (earliest != plain.end())
                RC_ASSERT(table.next().has_value() && *table.next() <= earliest->second);
        }
    });
}

TEST(TimerTableTest, TimersThatAreAllLateFireInTheOrderOfTheirMoments) {
    TimerTable table;
    const auto moment = [](int t) { return base::Instant(base::Duration(t)); };
    table.set(1, moment(6));
    table.set(2, moment(2));
    table.set(3, moment(4));
    table.set(2, moment(8));
    std::vector<std::uint64_t> order;
    while (const auto key = table.take_due(moment(100))) order.push_back(*key);
    EXPECT_EQ(order, (std::vector<std::uint64_t>{3, 1, 2}));
}

TEST(TimerTableTest, TimersThatAreSetAndCancelledForeverTakeNoMemory) {
    TimerTable table;
    std::size_t most = 0;
    for (int i = 0; i < 100'000; ++i) {
        table.set(1, base::Instant(base::Duration(1'000'000 - i)));
        table.set(2, base::Instant(base::Duration(2'000'000 + i)));
        table.cancel(2);
        most = std::max(most, table.places());
    }
    EXPECT_LE(most, 1024U + 4U);
}

}  // namespace
}  // namespace fullstop::adapters::asio
