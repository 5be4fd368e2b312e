// One exchange of the client: look up, connect, shake hands, send, read, end. A state machine on
// one non-blocking socket; it tells its owner net events. Nothing is tried twice, with one
// exception: on a kept connection (net::Connect::reuse) a server's close may cross the request. If
// the server's kernel acknowledged no byte of it, nobody can have read it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/asio/channel.h"
#include "adapters/asio/client/idle_pool.h"
#include "adapters/asio/client/resolver.h"
#include "adapters/asio/client/stamp.h"
#include "adapters/asio/client/unsent.h"
#include "adapters/asio/descriptor.h"
#include "net/event.h"
#include "net/limits.h"

namespace fullstop::adapters::asio {

/// What all connections of one host share.
struct ConnectionSurroundings {
    Loop& loop;
    Resolver resolver;
    TlsClientOptions tls_options;
    /// Made when first needed: reading the system's certificates takes a tenth of a second.
    const base::Result<TlsContext>& tls_context();
    std::optional<base::Result<TlsContext>> tls;
    bool kernel_stamps = true;
    StampConverter stamps;
    IdlePool pool{loop.context().get_executor()};
    std::array<char, net::kReadBytes>
        buffer{};  ///< one suffices: bytes live only until the part has seen them
};

/// Receives the events of a connection. Events of a connection that was closed do not come.
class ConnectionOwner {
public:
    virtual void deliver(const net::Event& event) = 0;
    /// The connection is over for a reason of its own; it may be forgotten.
    virtual void over(net::ConnectionId id) = 0;

protected:
    ~ConnectionOwner() = default;
};

class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(ConnectionSurroundings& around, ConnectionOwner& owner, const net::Connect& connect);

    void start();
    void send(net::Send send);
    void flow(bool on);  ///< reading goes on, or pauses
    /// No event follows. Unsent bytes are dropped. `keep`: the socket goes to the pool if it can.
    void close(net::CloseKind kind, bool keep = false);

private:
    enum class State { kConnecting, kShaking, kOpen, kClosed };

    void adopt(IdlePool::Kept kept);
    void start_fresh();
    bool may_send_again();
    void send_again();
    bool hand_over();
    void on_lookup(const Lookup& lookup);
    void try_next_address();
    void on_connect_ready();
    void attempt_failed(net::ConnectFailure why, std::string_view words);
    void on_attempt_timeout();
    void shake();
    void opened();
    void fail(net::ConnectFailure why, std::string text);

    void pump();
    void flush();
    void read_turn();
    void on_bytes(std::string_view bytes, std::int64_t stamp_real_ns);
    void peer_closed(net::CloseKind kind, std::string text);
    void want(Io::Status status);
    void wait_readable();
    void wait_writable();
    void arm(base::Instant at, void (Connection::*then)());
    void abandon_socket();
    void deliver(base::Instant at, decltype(net::Event::what) what);

    ConnectionSurroundings& around_;
    ConnectionOwner* owner_;
    net::ConnectionId id_;
    net::Endpoint endpoint_;
    base::Duration timeout_;
    base::Instant deadline_;
    State state_ = State::kConnecting;

    // While connecting
    std::vector<Address> addresses_;
    std::size_t next_address_ = 0;
    net::ConnectFailure why_ = net::ConnectFailure::kOther;
    std::string troubles_;
    std::unique_ptr<SteadyTimer> timer_;

    Descriptor socket_;
    std::unique_ptr<Channel> channel_;
    Unsent unsent_;
    bool waiting_to_read_ = false, waiting_to_write_ = false, write_broken_ = false,
         reset_seen_by_write_ = false, reads_ = true;
    bool first_bytes_ = true, speaks_tls_ = false, connected_told_ = false;

    // Of a kept connection, until the first byte comes
    bool reuse_, kept_ = false;
    std::vector<net::Send> request_;  ///< what was sent on it
    std::uint64_t acknowledged_before_ = 0;

    base::Instant last_at_;  ///< moments of one connection never go back
};

}  // namespace fullstop::adapters::asio
