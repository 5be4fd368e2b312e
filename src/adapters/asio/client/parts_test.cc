// Parts on a client host: their timers, signals and flow, and who is called when.
#include "adapters/asio/client/test_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>

#include "adapters/asio/clock.h"
#include "adapters/asio/test_peer.h"
#include "net/limits.h"

namespace fullstop::adapters::asio {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(HostTest, AStalledServerIsLeftToThePartsOwnTimer) {
    Peer peer(1, [](int fd) {
        send_all(fd, "one");
        EXPECT_EQ(receive_all(fd), "");
        ::close(fd);
    });
    Script script;
    script.on_start = [&](base::Instant, net::Actions& out) {
        out.push_back(plain(1, peer.port()));
    };
    script.on_event = [&](const net::Event& event, net::Actions& out) {
        if (std::holds_alternative<net::Received>(event.what))
            out.push_back(net::SetTimer{5, event.at + std::chrono::milliseconds(5)});
        if (std::holds_alternative<net::TimerFired>(event.what)) {
            out.push_back(net::Close{1, net::CloseKind::kFin});
            script.finished = true;
        }
    };
    auto running = host();
    running->add(script);
    EXPECT_EQ(running->run_until_done(), HostEnd::kDone);
    EXPECT_EQ(script.seen[1].order, "CR");
    EXPECT_EQ(script.own.bytes, "5 ");
}

TEST_F(HostTest, APausedConnectionReadsNothingUntilItGoesOnAndLosesNothing) {
    const std::string sent(8 << 20, 'x');
    Peer peer(1, [&](int fd) {
        send_all(fd, sent);
        ::close(fd);
    });
    Script script;
    std::size_t when_paused = 0, when_resumed = 0;
    script.on_start = [&](base::Instant, net::Actions& out) {
        out.push_back(plain(1, peer.port()));
    };
    script.on_event = [&](const net::Event& event, net::Actions& out) {
        if (std::holds_alternative<net::Received>(event.what) && when_paused == 0) {
            when_paused = script.seen[1].bytes.size();
            out.push_back(net::Flow{1, false});
            out.push_back(net::SetTimer{5, event.at + std::chrono::milliseconds(50)});
        }
        if (std::holds_alternative<net::TimerFired>(event.what)) {
            when_resumed = script.seen[1].bytes.size();
            out.push_back(net::Flow{1, true});
        }
    };
    auto running = host();
    running->add(script);
    EXPECT_EQ(running->run_until_done(), HostEnd::kDone);
    EXPECT_GT(when_paused, 0U);
    EXPECT_EQ(when_resumed, when_paused);
    EXPECT_EQ(script.seen[1].bytes.size(), sent.size());
    EXPECT_EQ(script.seen[1].close, net::CloseKind::kFin);
}

TEST_F(HostTest, APartActsForAReasonOfItsOwn) {
    Peer peer(1, [](int fd) {
        send_all(fd, receive_until(fd, "\n"));
        ::close(fd);
    });
    Script script;
    auto running = host();
    running->add(script);
    script.on_start = [&](base::Instant, net::Actions&) {
        loop.post([&] { running->act(script, {plain(1, peer.port()), net::Send{1, "hello\n"}}); });
    };
    EXPECT_EQ(running->run_until_done(), HostEnd::kDone);
    EXPECT_EQ(script.seen[1].bytes, "hello\n");
}

TEST_F(HostTest, PartsKeepTheirNamesApart) {
    Peer peer(2, [](int fd) {
        send_all(fd, receive_until(fd, "\n"));
        ::close(fd);
    });
    Script first, second;
    first.on_start = [&](base::Instant now, net::Actions& out) {
        out = {plain(1, peer.port()), net::Send{1, "first\n"}, net::SetTimer{1, now + kLong}};
    };
    second.on_start = [&](base::Instant now, net::Actions& out) {
        out = {plain(1, peer.port()), net::Send{1, "second\n"}, net::SetTimer{1, now}};
    };
    first.ends_expected = second.ends_expected = 1;
    auto running = host();
    running->add(first);
    running->add(second);
    running->run_until_done();
    EXPECT_EQ(first.seen[1].bytes, "first\n");
    EXPECT_EQ(second.seen[1].bytes, "second\n");
    EXPECT_EQ(first.own.order, "");
}

TEST_F(HostTest, ACompanionIsNotWaitedForAndIsClosedWithTheOthers) {
    std::atomic<bool> left = false;
    {
        Peer peer(1, [&](int fd) {
            send_all(fd, "x");
            left = receive_all(fd).empty();
            ::close(fd);
        });
        Script main, companion;
        companion.on_start = [&](base::Instant, net::Actions& out) {
            out.push_back(plain(1, peer.port()));
        };
        companion.on_event = [&](const net::Event& event, net::Actions&) {
            main.finished |= std::holds_alternative<net::Received>(event.what);
        };
        main.on_start = [](base::Instant now, net::Actions& out) {
            out.push_back(net::SetTimer{1, now + std::chrono::milliseconds(1)});
        };
        main.on_event = [&](const net::Event& event, net::Actions& out) {
            out.push_back(net::SetTimer{1, event.at + std::chrono::milliseconds(1)});
        };
        auto running = host();
        running->add(main);
        running->add(companion, Host::Wait::kCompanion);
        EXPECT_EQ(running->run_until_done(), HostEnd::kDone);
        running.reset();
    }
    EXPECT_TRUE(left);
}

TEST_F(HostTest, TimersFireInOrderOfTheirMomentsNotOfTheirSetting) {
    Script script;
    script.on_start = [](base::Instant now, net::Actions& out) {
        const auto in = [&](int ms) { return now + std::chrono::milliseconds(ms); };
        out = {net::SetTimer{1, in(6)},  net::SetTimer{2, in(2)},
               net::SetTimer{3, in(4)},  net::SetTimer{2, in(8)},  // moved later
               net::SetTimer{4, in(30)}, net::SetTimer{4, in(1)},  // moved earlier
               net::SetTimer{5, in(3)},  net::CancelTimer{5}};
    };
    script.on_event = [&](const net::Event&, net::Actions&) {
        script.finished = script.own.order.size() == 4;
    };
    auto running = host();
    running->add(script);
    running->run_until_done();
    EXPECT_EQ(script.own.bytes, "4 3 1 2 ");
}

TEST_F(HostTest, ATimerInThePastFiresInTheNextTurnAndNeverInside) {
    Script script;
    bool inside = false, nested = false;
    script.on_start = [](base::Instant now, net::Actions& out) {
        out.push_back(net::SetTimer{1, now - std::chrono::hours(1)});
    };
    script.on_event = [&](const net::Event& event, net::Actions& out) {
        nested |= std::exchange(inside, true);
        out.push_back(net::SetTimer{1, event.at});
        script.finished = script.own.order.size() == 3;
        inside = false;
    };
    auto running = host();
    running->add(script);
    running->run_until_done();
    EXPECT_EQ(script.own.order, "TTT");
    EXPECT_FALSE(nested);
}

TEST_F(HostTest, ATimerThatAlwaysSetsItselfForNowKeepsNobodyFromReading) {
    Peer peer(1, [](int fd) {
        send_all(fd, receive_until(fd, "\n"));
        ::close(fd);
    });
    Script script;
    script.on_start = [&](base::Instant now, net::Actions& out) {
        out = {plain(1, peer.port()), net::Send{1, "hello\n"}, net::SetTimer{1, now}};
    };
    script.on_event = [&](const net::Event& event, net::Actions& out) {
        if (std::holds_alternative<net::TimerFired>(event.what))
            out.push_back(net::SetTimer{1, event.at});
    };
    auto running = host();
    running->add(script);
    running->run_until_done();
    EXPECT_EQ(script.seen[1].bytes, "hello\n");
}

TEST_F(HostTest, InterruptReachesEveryPartOnceAndTheSecondEndsAtOnce) {
    Script polite, stubborn;
    polite.on_start = [&](base::Instant, net::Actions&) { loop.post([] { raise(SIGINT); }); };
    polite.on_event = [&](const net::Event& event, net::Actions&) {
        polite.finished = std::holds_alternative<net::Interrupted>(event.what);
        loop.post([] { raise(SIGINT); });
    };
    auto running = host();
    running->add(polite);
    running->add(stubborn);
    EXPECT_EQ(running->run_until_done(), HostEnd::kAbandoned);
    EXPECT_EQ(polite.own.order, "I");
    EXPECT_EQ(stubborn.own.order, "I");
}

TEST_F(HostTest, SigtermLetsPartsFinish) {
    Script script;
    script.on_start = [&](base::Instant, net::Actions&) { loop.post([] { raise(SIGTERM); }); };
    script.on_event = [&](const net::Event& event, net::Actions&) {
        script.finished = std::holds_alternative<net::Interrupted>(event.what);
    };
    auto running = host();
    running->add(script);
    EXPECT_EQ(running->run_until_done(), HostEnd::kDone);
}

TEST_F(HostTest, AHostThatGoesAwayMidStreamLeavesTheLoopUsable) {
    Peer peer(2, [](int fd) {
        send_all(fd, "x");
        receive_all(fd);
        ::close(fd);
    });
    for (int round = 0; round < 2; ++round) {
        Script script;
        script.on_start = [&](base::Instant, net::Actions& out) {
            out.push_back(plain(1, peer.port()));
        };
        script.on_event = [&](const net::Event& event, net::Actions&) {
            script.finished = std::holds_alternative<net::Received>(event.what);
        };
        auto running = host();
        running->add(script);
        EXPECT_EQ(running->run_until_done(), HostEnd::kDone);
    }
}

TEST_F(HostTest, APartMayActFromInsideItsOwnCall) {
    Peer peer(1, [](int fd) {
        send_all(fd, receive_until(fd, "\n"));
        ::close(fd);
    });
    Script script;
    auto running = host();
    running->add(script);
    script.on_start = [&](base::Instant, net::Actions& out) {
        out.push_back(plain(1, peer.port()));
        running->act(script, {net::Send{1, "hello\n"}});
    };
    EXPECT_EQ(running->run_until_done(), HostEnd::kDone);
    EXPECT_EQ(script.seen[1].bytes, "hello\n");
}

TEST_F(HostTest, WhatAPartWantsBeforeItHasStartedIsDoneWhenItHas) {
    Peer peer(1, [](int fd) {
        send_all(fd, receive_until(fd, "\n"));
        ::close(fd);
    });
    Script script;
    auto running = host();
    running->add(script);
    running->act(script, {plain(1, peer.port()), net::Send{1, "hello\n"}});
    EXPECT_EQ(running->run_until_done(), HostEnd::kDone);
    EXPECT_EQ(script.seen[1].bytes, "hello\n");
}

/// Two ends of one exchange: what the part wants of its first look at some bytes is done before its
/// second look, at which the bytes still live.
TEST_F(HostTest, BytesAreReadOnBehindWhatTheirArrivalLedTo) {
    struct Relay final : net::Part {
        explicit Relay(std::uint16_t a, std::uint16_t b) : from(a), to(b) {}
        void start(base::Instant, net::Actions& out) override {
            out.push_back(plain(1, from));
            out.push_back(plain(2, to));
            out.push_back(net::Send{1, "go\n"});
        }
        void on(const net::Event& event, net::Actions& out) override {
            if (const auto* sent = std::get_if<net::Sent>(&event.what); sent && sent->id == 2)
                log += "S";
            if (std::holds_alternative<net::PeerClosed>(event.what)) over = true;
            const auto* received = std::get_if<net::Received>(&event.what);
            if (received == nullptr || received->id != 1) return;
            log += "R";
            out.push_back(net::Send{2, std::string(received->bytes)});
        }
        void read_on(const net::Event& event, net::Actions&) override {
            const auto* received = std::get_if<net::Received>(&event.what);
            if (received->id == 1) log += "r" + std::string(received->bytes);
        }
        bool done() const override { return over; }
        std::uint16_t from, to;
        std::string log;
        bool over = false;
    };
    std::string got;
    Peer sink(1, [&](int fd) {
        got = receive_until(fd, "!");
        ::close(fd);
    });
    Peer source(1, [](int fd) {
        receive_until(fd, "\n");
        send_all(fd, "piece!");
        receive_all(fd);
        ::close(fd);
    });
    Relay relay(source.port(), sink.port());
    auto running = host();
    running->add(relay);
    EXPECT_EQ(running->run_until_done(), HostEnd::kDone);
    EXPECT_EQ(got, "piece!");
    EXPECT_EQ(relay.log, "Rrpiece!S");
}

}  // namespace
}  // namespace fullstop::adapters::asio
