// Kept connections against real peers on loopback: when one serves again, when it does not, and
// what is sent twice.
#include "adapters/asio/client/idle_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "adapters/asio/client/host.h"
#include "adapters/asio/limits.h"
#include "adapters/asio/test_peer.h"

namespace fullstop::adapters::asio {
namespace {

using ::testing::ElementsAre;

constexpr base::Duration kRested = kReuseAfter + std::chrono::milliseconds(20);

/// Asks "N\n" over one connection after the other; an answer ends with "\n".
class Asking : public ::testing::Test {
protected:
    /// `pause`: between an answer and the next question.
    void ask(std::uint16_t port, int questions, bool keep = true, bool reuse = true,
             base::Duration pause = {}) {
        script.ends_expected = 1000;
        script.on_start = [=](base::Instant, net::Actions& out) { connect(1, port, reuse, out); };
        script.on_event = [=, this](const net::Event& event, net::Actions& out) {
            if (const auto* connected = std::get_if<net::Connected>(&event.what))
                out.emplace_back(net::Send{connected->id, std::to_string(connected->id) + "\n"});
            if (const auto* received = std::get_if<net::Received>(&event.what);
                received != nullptr && received->bytes.ends_with('\n')) {
                out.emplace_back(net::Close{.id = received->id, .keep = keep});
                if (received->id == static_cast<net::ConnectionId>(questions))
                    script.finished = true;
                else
                    out.emplace_back(net::SetTimer{received->id + 1, event.at + pause});
            }
            if (const auto* fired = std::get_if<net::TimerFired>(&event.what))
                connect(fired->id, port, reuse, out);
            if (std::holds_alternative<net::PeerClosed>(event.what) ||
                std::holds_alternative<net::ConnectFailed>(event.what))
                script.finished = true;
        };
        auto host = Host::create(
            loop, {.verify_tls = true, .ca_file = {}, .kernel_stamps = false, .signals = false});
        ASSERT_TRUE(host.has_value());
        (*host)->add(script);
        (*host)->run_until_done();
    }
    static void connect(net::ConnectionId id, std::uint16_t port, bool reuse, net::Actions& out) {
        out.emplace_back(net::Connect{.id = id,
                                      .endpoint = {.host = "127.0.0.1", .port = port, .tls = false},
                                      .timeout = std::chrono::seconds(5),
                                      .reuse = reuse});
    }
    /// Answers each line of a connection; the words it read are noted.
    void answer_lines(int fd, int most, bool leave_open = false) {
        ++connections;
        for (int i = 0; i < most; ++i) {
            const std::string line = receive_until(fd, "\n");
            if (line.empty()) break;
            const std::lock_guard lock(mutex);
            read.push_back(line.substr(0, line.size() - 1));
            send_all(fd, "answer " + line);
        }
        if (!leave_open) ::close(fd);
    }

    Loop loop;
    Script script;
    std::atomic<int> connections = 0;
    std::mutex mutex;
    std::vector<std::string> read;
};

TEST_F(Asking, AWholeExchangeLeavesItsConnectionToTheNext) {
    Peer peer(1, [this](int fd) { answer_lines(fd, 100); });
    ask(peer.port(), 5, true, true, kRested);
    EXPECT_EQ(connections, 1);
    EXPECT_THAT(read, ElementsAre("1", "2", "3", "4", "5"));
    for (net::ConnectionId id = 1; id <= 5; ++id)
        EXPECT_EQ(script.seen[id].bytes, "answer " + std::to_string(id) + "\n");
}

TEST_F(Asking, WhoDoesNotAskForReuseGetsAFreshConnectionEachTime) {
    Peer peer(3, [this](int fd) { answer_lines(fd, 100); });
    ask(peer.port(), 3, true, false);
    EXPECT_EQ(connections, 3);
}

TEST_F(Asking, WhatWasNotClosedWithKeepIsNotUsedAgain) {
    Peer peer(3, [this](int fd) { answer_lines(fd, 100); });
    ask(peer.port(), 3, false);
    EXPECT_EQ(connections, 3);
}

TEST_F(Asking, AConnectionThatItsServerClosedMeanwhileIsNotUsedAgain) {
    Peer peer(3, [this](int fd) { answer_lines(fd, 1); });
    ask(peer.port(), 3, true, true, kRested);
    EXPECT_EQ(connections, 3);
    EXPECT_THAT(read, ElementsAre("1", "2", "3"));
}

TEST_F(Asking, AServerThatClosesALittleAfterItsAnswerLosesNoRequest) {
    Peer peer(3, [this](int fd) {
        answer_lines(fd, 1, true);
        ::usleep(20'000);
        ::close(fd);
    });
    ask(peer.port(), 3);
    EXPECT_EQ(connections, 3);
    EXPECT_THAT(read, ElementsAre("1", "2", "3"));
    for (net::ConnectionId id = 1; id <= 3; ++id)
        EXPECT_EQ(script.seen[id].bytes, "answer " + std::to_string(id) + "\n");
}

TEST_F(Asking, AServerThatSpeaksUnaskedIsNotAskedAgainOnThatConnection) {
    Peer peer(2, [this](int fd) {
        answer_lines(fd, 1, true);
        ::usleep(5000);
        send_all(fd, "stray\n");
        receive_all(fd);
        ::close(fd);
    });
    ask(peer.port(), 2, true, true, kRested);
    EXPECT_EQ(connections, 2);
    EXPECT_EQ(script.seen[2].bytes, "answer 2\n");
}

TEST_F(Asking, ARequestThatTheServerHasTakenIsNeverSentAgain) {
    Peer peer(2, [this](int fd) {
        answer_lines(fd, 1, true);
        read.push_back(receive_until(fd, "\n"));  // the second question is read, and never answered
        ::close(fd);
    });
    ask(peer.port(), 2, true, true, kRested);
    EXPECT_EQ(connections, 1);
    EXPECT_THAT(read, ElementsAre("1", "2\n"));
    EXPECT_EQ(script.seen[2].order, "CSP");
    EXPECT_EQ(script.seen[2].close, net::CloseKind::kFin);
}

TEST_F(Asking, ARequestThatMeetsAClosingServerIsSentOnceMore) {
    // The close happens between the look at the kept connection and the request.
    Listener listener;
    int kept = -1;
    std::thread server([&] {
        kept = ::accept(listener.fd(), nullptr, nullptr);
        answer_lines(kept, 1, true);
        const int fresh = ::accept(listener.fd(), nullptr, nullptr);
        answer_lines(fresh, 1);
    });
    script.ends_expected = 1000;
    script.on_start = [&](base::Instant, net::Actions& out) {
        connect(1, listener.port(), true, out);
    };
    script.on_event = [&](const net::Event& event, net::Actions& out) {
        if (const auto* connected = std::get_if<net::Connected>(&event.what)) {
            if (connected->id == 2) ::close(kept);
            out.emplace_back(net::Send{connected->id, std::to_string(connected->id) + "\n"});
        }
        if (const auto* received = std::get_if<net::Received>(&event.what);
            received != nullptr && received->bytes.ends_with('\n')) {
            out.emplace_back(net::Close{.id = received->id, .keep = true});
            if (received->id == 2) script.finished = true;
            if (received->id == 1) out.emplace_back(net::SetTimer{2, event.at + kRested});
        }
        if (std::holds_alternative<net::TimerFired>(event.what))
            connect(2, listener.port(), true, out);
        if (std::holds_alternative<net::PeerClosed>(event.what)) script.finished = true;
    };
    auto host = Host::create(
        loop, {.verify_tls = true, .ca_file = {}, .kernel_stamps = false, .signals = false});
    (*host)->add(script);
    (*host)->run_until_done();
    if (connections < 2) ::close(connect_to(listener.port()));
    server.join();
    EXPECT_EQ(script.seen[2].bytes, "answer 2\n");
    EXPECT_THAT(read, ElementsAre("1", "2"));
    EXPECT_EQ(connections, 2);
}

TEST_F(Asking, AKeptConnectionIsClosedWhenItsTimeIsOver) {
    IdlePool pool(loop.context().get_executor());
    Peer peer(1, [](int fd) {
        receive_all(fd);
        ::close(fd);
    });
    const int fd = connect_to(peer.port());
    const net::Endpoint endpoint{.host = "127.0.0.1", .port = peer.port(), .tls = false};
    pool.put(endpoint, {.socket = Descriptor(loop.context().get_executor(), fd),
                        .channel = plain_channel(fd, false)});
    EXPECT_EQ(pool.size(), 1U);
    EXPECT_FALSE(pool.take({.host = "127.0.0.1", .port = 1, .tls = false}));
    const auto ticker = loop.every(std::chrono::milliseconds(20), [&](base::Instant) {
        if (pool.size() == 0) loop.stop();
    });
    const auto limit = loop.every(std::chrono::seconds(10), [&](base::Instant) { loop.stop(); });
    loop.run();
    EXPECT_EQ(pool.size(), 0U);
}

}  // namespace
}  // namespace fullstop::adapters::asio
