// For tests: little servers with a script per connection, on real loopback sockets, and a Part that
// writes down what it is told. They block in threads of their own, so that the code under test is
// alone on its loop.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "net/event.h"

namespace fullstop::adapters::asio {

/// A listening socket on 127.0.0.1 whose port the system picked.
class Listener {
public:
    explicit Listener(int backlog = 512) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
            ::listen(fd_, backlog) != 0 ||
            ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
            throw std::runtime_error("no loopback socket for a test");
        port_ = ntohs(address.sin_port);
    }
    ~Listener() { close(); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    int fd() const { return fd_; }
    std::uint16_t port() const { return port_; }
    void close() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

private:
    int fd_;
    std::uint16_t port_ = 0;
};

inline void send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (put <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
}

/// Reads until the bytes end with something that holds `end`, or the peer is gone.
inline std::string receive_until(int fd, std::string_view end) {
    std::string all;
    char buffer[64 * 1024];
    while (true) {
        const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
        if (got <= 0) return all;
        const std::size_t from = all.size() < end.size() ? 0 : all.size() - end.size();
        all.append(buffer, static_cast<std::size_t>(got));
        if (!end.empty() && all.find(end, from) != std::string::npos) return all;
    }
}

inline std::string receive_all(int fd) { return receive_until(fd, ""); }

inline void reset(int fd) {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(fd);
}

/// Accepts `connections` and runs the script for each in its own thread. The script owns the
/// descriptor.
class Peer {
public:
    Peer(int connections, std::function<void(int fd)> script)
        : acceptor_([this, connections, script = std::move(script)] {
              for (int i = 0; i < connections; ++i) {
                  const int fd = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
                  if (fd < 0) break;
                  const int on = 1;  // without it, what waits for an acknowledgement is lost when
                                     // the script resets
                  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                  serving_.emplace_back(script, fd);
              }
              for (std::thread& thread : serving_) thread.join();
          }) {}
    ~Peer() {
        ::shutdown(listener_.fd(), SHUT_RDWR);
        acceptor_.join();
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    std::uint16_t port() const { return listener_.port(); }

private:
    Listener listener_;
    std::vector<std::thread> serving_;
    std::thread acceptor_;
};

/// A blocking client of a test.
inline int connect_to(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        throw std::runtime_error("no connection for a test");
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/// A part made of functions: opens what the test says, remembers everything, is done when the test
/// says so.
class Script final : public net::Part {
public:
    struct Seen {
        std::string order;  ///< one letter an event: C connected, F failed, S sent, R received, P
                            ///< peer closed, T timer, I interrupted
        std::string bytes;
        net::ConnectFailure failure{};
        net::CloseKind close{};
        std::string text;
        std::vector<net::Event> stamps;  ///< Received only, their bytes gone
    };

    std::function<void(base::Instant, net::Actions&)> on_start = [](base::Instant, net::Actions&) {
    };
    std::function<void(const net::Event&, net::Actions&)> on_event = [](const net::Event&,
                                                                        net::Actions&) {};
    std::map<net::ConnectionId, Seen> seen;
    Seen own;  ///< timers and interrupts
    int ends_expected = 1;
    int ends = 0;
    bool finished = false;

    void start(base::Instant now, net::Actions& out) override { on_start(now, out); }
    void on(const net::Event& event, net::Actions& out) override {
        std::visit([&](const auto& what) { note(what, event); }, event.what);
        on_event(event, out);
    }
    bool done() const override { return finished || ends >= ends_expected; }

private:
    void note(const net::Connected& e, const net::Event&) { seen[e.id].order += 'C'; }
    void note(const net::ConnectFailed& e, const net::Event&) {
        Seen& s = seen[e.id];
        s.order += 'F';
        s.failure = e.why;
        s.text = e.text;
        ++ends;
    }
    void note(const net::Sent& e, const net::Event&) { seen[e.id].order += 'S'; }
    void note(const net::Received& e, const net::Event& event) {
        Seen& s = seen[e.id];
        if (s.order.empty() || s.order.back() != 'R') s.order += 'R';
        s.bytes += e.bytes;
        s.stamps.push_back({event.at, net::Received{e.id, {}, e.clock}});
    }
    void note(const net::PeerClosed& e, const net::Event&) {
        Seen& s = seen[e.id];
        s.order += 'P';
        s.close = e.kind;
        s.text = e.text;
        ++ends;
    }
    void note(const net::TimerFired& e, const net::Event&) {
        own.order += 'T', own.bytes += std::to_string(e.id) + " ";
    }
    void note(const net::Interrupted&, const net::Event&) { own.order += 'I'; }
};

}  // namespace fullstop::adapters::asio
