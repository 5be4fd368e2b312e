// Of a Connection: how it takes over a kept socket, when it sends a request once more, and how it
// leaves its socket to the next.
#include <utility>

#include "adapters/asio/client/acknowledged.h"
#include "adapters/asio/client/connection.h"
#include "adapters/asio/clock.h"

namespace fullstop::adapters::asio {

void Connection::adopt(IdlePool::Kept kept) {
    socket_ = std::move(kept.socket);
    channel_ = std::move(kept.channel);
    kept_ = true;
    acknowledged_before_ = acknowledged_bytes(socket_.native_handle());
    opened();
}

/// On a kept connection the server closed, or spoke, and has acknowledged nothing of what was sent
/// on it: that was on its way already, and the request is still nobody's.
bool Connection::may_send_again() {
    return kept_ && first_bytes_ &&
           acknowledged_bytes(socket_.native_handle()) == acknowledged_before_;
}

void Connection::send_again() {
    abandon_socket();
    kept_ = write_broken_ = reset_seen_by_write_ = false;
    state_ = State::kConnecting;
    deadline_ = SystemClock().now() + timeout_;
    unsent_.clear();
    for (net::Send& send : std::exchange(request_, {}))
        unsent_.append(std::move(send.bytes), std::move(send.more));
    start_fresh();
}

/// True when the socket went to the pool: only one that has nothing left to send, and that was read
/// as it came.
bool Connection::hand_over() {
    if (!reuse_ || state_ != State::kOpen || !unsent_.empty() || write_broken_ || !reads_)
        return false;
    state_ = State::kClosed;
    ErrorCode ignored;
    socket_.cancel(ignored);
    around_.pool.put(endpoint_, {.socket = std::move(socket_), .channel = std::move(channel_)});
    return true;
}

}  // namespace fullstop::adapters::asio
