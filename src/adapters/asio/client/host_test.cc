// The client host against real peers on loopback: each fault of a peer arrives as the event that
// names it.
#include "adapters/asio/client/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>

#include "adapters/asio/client/test_host.h"
#include "adapters/asio/clock.h"
#include "adapters/asio/test_peer.h"
#include "net/limits.h"

namespace fullstop::adapters::asio {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(HostTest, AnAnswerThatEndsWithFinIsDeliveredWholeAndClosedByFin) {
    Peer peer(1, [](int fd) {
        send_all(fd, "got " + receive_until(fd, "\n"));
        ::close(fd);
    });
    const Script::Seen seen = exchange(plain(7, peer.port()));
    EXPECT_EQ(seen.order, "CSRP");
    EXPECT_EQ(seen.bytes, "got hello\n");
    EXPECT_EQ(seen.close, net::CloseKind::kFin);
    EXPECT_EQ(seen.text, "");
}

TEST_F(HostTest, AResetIsToldFromAFinAndLosesNothingThatCameBefore) {
    Peer peer(1, [](int fd) {
        receive_until(fd, "\n");
        send_all(fd, "half an ans");
        reset(fd);
    });
    const Script::Seen seen = exchange(plain(1, peer.port()));
    EXPECT_EQ(seen.order, "CSRP");
    EXPECT_EQ(seen.bytes, "half an ans");
    EXPECT_EQ(seen.close, net::CloseKind::kRst);
    EXPECT_EQ(seen.text, "Connection reset by peer");
}

TEST_F(HostTest, AClosedPortIsRefusedWithItsAddress) {
    Listener gone;
    gone.close();
    const Script::Seen seen = exchange(plain(1, gone.port()));
    EXPECT_EQ(seen.order, "F");
    EXPECT_EQ(seen.failure, net::ConnectFailure::kRefused);
    EXPECT_EQ(seen.text, "127.0.0.1:" + std::to_string(gone.port()) + ": Connection refused");
}

TEST_F(HostTest, ANameThatDoesNotExistIsAResolveFailure) {
    const Script::Seen seen = exchange(plain(1, 80, "no-such-host.invalid"));
    EXPECT_EQ(seen.order, "F");
    EXPECT_EQ(seen.failure, net::ConnectFailure::kResolve);
    EXPECT_THAT(seen.text, HasSubstr("no-such-host.invalid"));
}

TEST_F(HostTest, LocalhostReachesAServerThatListensOnIPv4Only) {
    Peer peer(1, [](int fd) {
        send_all(fd, receive_until(fd, "\n"));
        ::close(fd);
    });
    EXPECT_EQ(exchange(plain(1, peer.port(), "localhost")).bytes, "hello\n");
}

TEST_F(HostTest, AListenerWithAFullBacklogIsAConnectTimeOut) {
    Listener full(0);
    std::vector<int> fillers;
    for (int i = 0; i < 4; ++i) {  // a backlog of 0 holds one or two; further ones stay unanswered
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(full.port());
        if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
            EXPECT_EQ(errno, EINPROGRESS);
        fillers.push_back(fd);
    }
    const Script::Seen seen =
        exchange(plain(1, full.port(), "127.0.0.1", std::chrono::milliseconds(100)));
    EXPECT_EQ(seen.order, "F");
    EXPECT_EQ(seen.failure, net::ConnectFailure::kTimedOut);
    EXPECT_THAT(seen.text, HasSubstr("no answer in time"));
    for (const int fd : fillers) ::close(fd);
}

TEST_F(HostTest, ANetworkWithoutARouteIsUnreachable) {
    // 0.0.0.0/8 other than 0.0.0.0 itself is never routed.
    const Script::Seen seen = exchange(plain(1, 80, "255.255.255.255"));
    EXPECT_EQ(seen.failure, net::ConnectFailure::kUnreachable) << seen.text;
}

TEST_F(HostTest, OurOwnCloseIsSeenByThePeerAsTheKindThatWasAskedFor) {
    for (const net::CloseKind kind : {net::CloseKind::kFin, net::CloseKind::kRst}) {
        std::atomic<int> error = -1;
        {
            Peer peer(1, [&](int fd) {
                send_all(fd, "go");
                char byte = 0;
                error = ::recv(fd, &byte, 1, 0) == 0 ? 0 : errno;
                ::close(fd);
            });
            Script script;
            script.on_start = [&](base::Instant, net::Actions& out) {
                out.push_back(plain(1, peer.port()));
            };
            script.on_event = [&](const net::Event& event, net::Actions& out) {
                if (!std::holds_alternative<net::Received>(event.what)) return;
                out.push_back(net::Close{1, kind});
                script.finished = true;
            };
            auto running = host();
            running->add(script);
            running->run_until_done();
            EXPECT_EQ(script.seen[1].order, "CR") << "no event may follow our own close";
        }
        EXPECT_EQ(error, kind == net::CloseKind::kFin ? 0 : ECONNRESET);
    }
}

TEST_F(HostTest, AServerThatAnswersEarlyAndBreaksOffIsReadBeforeTheReset) {
    // It answers the first byte of a request too large to be taken, as a 413 does, and leaves the
    // rest unread.
    Peer peer(1, [](int fd) {
        char byte = 0;
        EXPECT_EQ(::recv(fd, &byte, 1, 0), 1);
        send_all(fd, "too large");
        ::close(fd);
    });
    const Script::Seen seen = exchange(plain(1, peer.port()), std::string(32 << 20, 'x'));
    EXPECT_THAT(seen.order, StartsWith("C"));
    EXPECT_EQ(seen.order.back(), 'P');
    EXPECT_EQ(seen.order.find('S'), std::string::npos) << "not everything was handed to the kernel";
    EXPECT_EQ(seen.close, net::CloseKind::kRst);
}

TEST_F(HostTest, EveryByteComesInOrderWhateverTheSizesOfWritesAndReads) {
    std::string all(3 << 20, '\0');
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = static_cast<char>((i * 2654435761U) >> 13);
    Peer peer(1, [&](int fd) {
        receive_until(fd, "\n");
        std::size_t size = 1;
        for (std::size_t at = 0; at < all.size(); at += size, size = size * 5 % 70001 + 1)
            send_all(fd, std::string_view(all).substr(at, size));
        ::close(fd);
    });
    const Script::Seen seen = exchange(plain(1, peer.port()));
    EXPECT_TRUE(seen.bytes == all) << seen.bytes.size() << " bytes of " << all.size();
    EXPECT_TRUE(std::is_sorted(seen.stamps.begin(), seen.stamps.end(),
                               [](const auto& a, const auto& b) { return a.at < b.at; }));
}

TEST_F(HostTest, ALongRequestIsSentWholeAndSaysSentOnce) {
    const std::string request = std::string(8 << 20, 'q') + "\n";
    std::atomic<bool> whole = false;
    Peer peer(1, [&](int fd) {
        whole = receive_until(fd, "\n") == request;
        ::close(fd);
    });
    const Script::Seen seen = exchange(plain(1, peer.port()), request);
    EXPECT_EQ(seen.order, "CSP");
    EXPECT_TRUE(whole);
}

TEST_F(HostTest, TwoHundredConnectionsAtOnceEachGetTheirOwnAnswer) {
    constexpr int kCount = 200;
    Peer peer(kCount, [](int fd) {
        send_all(fd, receive_until(fd, "\n"));
        ::close(fd);
    });
    Script script;
    script.ends_expected = kCount;
    script.on_start = [&](base::Instant, net::Actions& out) {
        for (net::ConnectionId id = 1; id <= kCount; ++id) {
            out.push_back(plain(id, peer.port()));
            out.push_back(net::Send{id, std::to_string(id) + "\n"});
        }
    };
    auto running = host();
    running->add(script);
    running->run_until_done();
    for (net::ConnectionId id = 1; id <= kCount; ++id) {
        EXPECT_EQ(script.seen[id].order, "CSRP");
        EXPECT_EQ(script.seen[id].bytes, std::to_string(id) + "\n");
    }
}

TEST_F(HostTest, KernelStampsLieBetweenThePeersSendAndOurReading) {
    std::vector<base::Instant> before_send;
    Peer peer(1, [&](int fd) {
        receive_until(fd, "\n");
        for (int i = 0; i < 50; ++i) {
            before_send.push_back(SystemClock().now());
            send_all(fd, "x");
            receive_until(fd, "y");  // one event at a time, so that each read is one send
        }
        ::close(fd);
    });
    Script script;
    std::vector<base::Duration> late;
    script.on_start = [&](base::Instant, net::Actions& out) {
        out = {plain(1, peer.port()), net::Send{1, "\n"}};
    };
    script.on_event = [&](const net::Event& event, net::Actions& out) {
        if (!std::holds_alternative<net::Received>(event.what)) return;
        late.push_back(SystemClock().now() - event.at);
        out.push_back(net::Send{1, "y"});
    };
    auto running = host();
    running->add(script);
    running->run_until_done();
    const auto& stamps = script.seen[1].stamps;
    ASSERT_EQ(stamps.size(), before_send.size());
    std::size_t of_kernel = 0;
    for (std::size_t i = 0; i < stamps.size(); ++i) {
        of_kernel += std::get<net::Received>(stamps[i].what).clock == answer::StampClock::kKernel;
        EXPECT_GE(stamps[i].at, before_send[i] - std::chrono::microseconds(20))
            << "event " << i;  // the doubt of two clocks
        EXPECT_GE(late[i], base::Duration::zero()) << "a stamp is never later than the user's own";
    }
    EXPECT_EQ(of_kernel, stamps.size()) << "loopback stamps every segment";
}

TEST_F(HostTest, WithoutKernelStampsEveryMomentSaysSo) {
    Peer peer(1, [](int fd) {
        send_all(fd, receive_until(fd, "\n"));
        ::close(fd);
    });
    Script script;
    script.on_start = [&](base::Instant, net::Actions& out) {
        out = {plain(1, peer.port()), net::Send{1, "\n"}};
    };
    auto running = host({.ca_file = {}, .kernel_stamps = false});
    running->add(script);
    running->run_until_done();
    ASSERT_FALSE(script.seen[1].stamps.empty());
    EXPECT_EQ(std::get<net::Received>(script.seen[1].stamps[0].what).clock,
              answer::StampClock::kUserSpace);
}

TEST_F(HostTest, WhicheverDescriptorIsMissingTheConnectionFailsWithTheRemedy) {
    Listener listener;
    int failures = 0;
    bool reached = false;
    for (int spare = 0; !reached && spare < 10; ++spare) {
        auto running = host({.ca_file = {}, .signals = false});
        rlimit before{};
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
        const int next = ::dup(0);
        ASSERT_GE(next, 0);
        ::close(next);
        rlimit tight = before;
        tight.rlim_cur = static_cast<rlim_t>(next + spare);
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
        Script script;
        script.on_start = [&](base::Instant, net::Actions& out) {
            out.push_back(plain(1, listener.port()));
        };
        script.on_event = [&](const net::Event&, net::Actions&) { script.finished = true; };
        running->add(script);
        running->run_until_done();
        setrlimit(RLIMIT_NOFILE, &before);
        reached = script.seen[1].order == "C";
        if (reached) continue;
        ++failures;
        EXPECT_EQ(script.seen[1].order, "F");
        EXPECT_THAT(script.seen[1].text, HasSubstr("ulimit -n"));
    }
    EXPECT_TRUE(reached);
    EXPECT_GE(failures, 1);
}

}  // namespace
}  // namespace fullstop::adapters::asio
