// The life of one client connection, from name to end.
#include "adapters/asio/client/connection.h"

#include <errno.h>
#include <fmt/core.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstring>
#include <utility>

#include "adapters/asio/clock.h"
#include "adapters/asio/limits.h"

namespace fullstop::adapters::asio {
namespace {

base::Instant now() { return SystemClock().now(); }

net::ConnectFailure classify(int error) {
    switch (error) {
        case ECONNREFUSED: return net::ConnectFailure::kRefused;
        case ETIMEDOUT: return net::ConnectFailure::kTimedOut;
        case ENETUNREACH:
        case EHOSTUNREACH:
        case EADDRNOTAVAIL:
        case EACCES:
        case EPERM: return net::ConnectFailure::kUnreachable;
        default: return net::ConnectFailure::kOther;
    }
}

std::string socket_words(int error) {
    const bool descriptors = error == EMFILE || error == ENFILE;
    return fmt::format("no socket to be had: {}{}", system_words(error),
                       descriptors ? " (raise the limit with ulimit -n)" : "");
}

/// Connecting to a free port of one's own machine can, by chance of the source port, meet oneself.
bool is_self_connected(int fd) {
    sockaddr_storage here{}, there{};
    socklen_t here_size = sizeof here, there_size = sizeof there;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_size) != 0) return false;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_size) != 0) return false;
    return here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

/// A TLS server answers plain bytes with an alert record: type 21, version 3.x.
bool is_tls_alert(std::string_view bytes) {
    return bytes.size() >= 2 && bytes[0] == '\x15' && bytes[1] == '\x03';
}

}  // namespace

Connection::Connection(ConnectionSurroundings& around, ConnectionOwner& owner,
                       const net::Connect& connect)
    : around_(around),
      owner_(&owner),
      id_(connect.id),
      endpoint_(connect.endpoint),
      timeout_(connect.timeout),
      deadline_(now() + connect.timeout),
      socket_(around.loop.context().get_executor()),
      reuse_(connect.reuse),
      last_at_(now()) {}

const base::Result<TlsContext>& ConnectionSurroundings::tls_context() {
    if (!tls) tls = TlsContext::client(tls_options);
    return *tls;
}

// Connecting
// -------------------------------------------------------------------------------------------------

void Connection::start() {
    if (auto kept = reuse_ ? around_.pool.take(endpoint_) : std::nullopt)
        return adopt(std::move(*kept));
    start_fresh();
}

void Connection::start_fresh() {
    addresses_ = Resolver::literal(endpoint_.host, endpoint_.port);
    if (!addresses_.empty()) return try_next_address();
    arm(std::min(deadline_, now() + kResolveTimeout), &Connection::on_attempt_timeout);
    around_.resolver.look_up(
        endpoint_.host, endpoint_.port, [weak = weak_from_this()](const Lookup& lookup) {
            const auto self = weak.lock();
            if (self && self->state_ == State::kConnecting && self->addresses_.empty())
                self->on_lookup(lookup);
        });
}

void Connection::on_lookup(const Lookup& lookup) {
    if (lookup.addresses.empty())
        return fail(net::ConnectFailure::kResolve,
                    fmt::format("cannot look up {}: {}", endpoint_.host, lookup.trouble));
    addresses_ = lookup.addresses;
    try_next_address();
}

// Each address of a name gets an equal share of the time that is left, so that a dead IPv6 route
// does not hide a living IPv4 one. This is one connection being made, not a retry: no address is
// tried twice.
void Connection::try_next_address() {
    if (next_address_ == addresses_.size()) return fail(why_, troubles_);
    const Address& address = addresses_[next_address_++];
    const int fd =
        ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail(net::ConnectFailure::kOther, socket_words(errno));
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (around_.kernel_stamps) {
        enable_receive_stamps(fd);
        around_.stamps.note(read_clock_pair());
    }
    const int result = ::connect(fd, address.get(), address.size);
    const int error = result == 0 ? 0 : errno;
    ErrorCode assigned;
    socket_.assign(fd, assigned);
    if (assigned) {
        ::close(fd);
        return fail(net::ConnectFailure::kOther, socket_words(assigned.value()));
    }
    const auto shares = static_cast<base::Duration::rep>(addresses_.size() - next_address_ + 1);
    arm(now() + (deadline_ - now()) / shares, &Connection::on_attempt_timeout);
    if (error == 0) return on_connect_ready();
    if (error != EINPROGRESS) return attempt_failed(classify(error), system_words(error));
    wait_writable();
}

void Connection::attempt_failed(net::ConnectFailure why, std::string_view words) {
    why_ = why;
    troubles_ += fmt::format("{}{}: {}", troubles_.empty() ? "" : "; ",
                             addresses_[next_address_ - 1].text(), words);
    abandon_socket();
    if (now() >= deadline_) return fail(why_, troubles_);
    try_next_address();
}

void Connection::on_connect_ready() {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket_.native_handle(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0 && is_self_connected(socket_.native_handle())) error = ECONNREFUSED;
    if (error != 0) return attempt_failed(classify(error), system_words(error));
    if (!endpoint_.tls) {
        channel_ = plain_channel(socket_.native_handle(), around_.kernel_stamps);
        return opened();
    }
    const auto& tls = around_.tls_context();
    if (!tls) return fail(net::ConnectFailure::kTls, tls.error().message);
    channel_ = tls->channel_to(socket_.native_handle(), endpoint_.host);
    state_ = State::kShaking;
    arm(deadline_, &Connection::on_attempt_timeout);
    shake();
}

void Connection::on_attempt_timeout() {
    if (state_ == State::kShaking)
        return fail(net::ConnectFailure::kTimedOut, "the TLS handshake did not finish in time");
    if (addresses_.empty())
        return fail(net::ConnectFailure::kResolve,
                    fmt::format("looking up {} took too long", endpoint_.host));
    attempt_failed(net::ConnectFailure::kTimedOut, "no answer in time");
}

void Connection::shake() {
    Io io = channel_->handshake();
    switch (io.status) {
        case Io::Status::kDone: return opened();
        case Io::Status::kEnd:
            return fail(net::ConnectFailure::kTls,
                        "the server closed the connection during the TLS handshake");
        case Io::Status::kReset: return fail(net::ConnectFailure::kTls, std::move(io.text));
        default: return want(io.status);
    }
}

void Connection::opened() {
    timer_.reset();
    state_ = State::kOpen;
    if (!std::exchange(connected_told_, true)) deliver(now(), net::Connected{id_});
    if (state_ != State::kOpen) return;
    flush();
    // TLS may have read the first bytes of the answer along with the handshake: look before
    // waiting.
    if (state_ == State::kOpen) endpoint_.tls ? read_turn() : wait_readable();
}

void Connection::fail(net::ConnectFailure why, std::string text) {
    deliver(now(), net::ConnectFailed{id_, why, std::move(text)});
    close(net::CloseKind::kFin);
}

// Open
// -------------------------------------------------------------------------------------------------

void Connection::send(net::Send send) {
    if (state_ == State::kClosed) return;
    if (kept_ && first_bytes_) request_.push_back(send);
    if (write_broken_) return;
    if (unsent_.size() + send.bytes.size() + (send.more ? send.more->size() : 0) > kMaxUnsentBytes)
        return peer_closed(net::CloseKind::kRst, "more was sent than the peer takes; given up");
    unsent_.append(std::move(send.bytes), std::move(send.more));
    if (state_ == State::kOpen && !waiting_to_write_) flush();
}

/// Hands waiting bytes to the kernel. A failed write is not the end: what the peer said before it
/// broke off is still to be read. The system tells of a reset only once, to whoever comes first; so
/// the write remembers it for the read.
void Connection::flush() {
    if (unsent_.empty()) return;
    while (!unsent_.empty()) {
        const Io io = channel_->write(unsent_.view());
        if (io.status == Io::Status::kDone) {
            unsent_.consume(io.bytes);
            continue;
        }
        if (io.status == Io::Status::kWantWrite) wait_writable();
        write_broken_ = io.status == Io::Status::kReset || io.status == Io::Status::kEnd;
        if (io.error == ECONNRESET) reset_seen_by_write_ = true;
        return;
    }
    deliver(now(), net::Sent{id_});
}

void Connection::pump() {
    flush();
    if (state_ == State::kOpen) read_turn();
}

void Connection::flow(bool on) {
    if (std::exchange(reads_, on) == on || !on || state_ != State::kOpen) return;
    ::boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
        if (self->state_ == State::kOpen) self->pump();
    });
}

/// Reads what is there, within its turn, then waits for more.
void Connection::read_turn() {
    for (int i = 0; i < kReadsPerTurn; ++i) {
        if (!reads_) return;
        std::int64_t stamp = 0;
        Io io = channel_->read(around_.buffer, stamp);
        switch (io.status) {
            case Io::Status::kDone: on_bytes({around_.buffer.data(), io.bytes}, stamp); break;
            case Io::Status::kEnd: return peer_closed(net::CloseKind::kFin, std::move(io.text));
            case Io::Status::kReset: return peer_closed(net::CloseKind::kRst, std::move(io.text));
            default: return want(io.status);
        }
        if (state_ != State::kOpen) return;
        // A short read emptied the socket; asking again would cost a system call to hear "nothing".
        if (io.bytes < around_.buffer.size() && !endpoint_.tls) break;
    }
    if (channel_->holds_bytes())
        ::boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
            if (self->state_ == State::kOpen) self->pump();
        });
    else
        wait_readable();
}

void Connection::on_bytes(std::string_view bytes, std::int64_t stamp_real_ns) {
    // A kept connection on which the server speaks before it can have read the request: an answer
    // to somebody else.
    if (may_send_again()) return send_again();
    if (std::exchange(first_bytes_, false)) {
        speaks_tls_ = !endpoint_.tls && is_tls_alert(bytes);
        request_ = {};
    }
    base::Instant at;
    auto clock = answer::StampClock::kUserSpace;
    if (stamp_real_ns == 0) {
        at = now();
    } else {
        const ClockPair pair = read_clock_pair();
        const auto converted = around_.stamps.convert(stamp_real_ns, pair);
        at = converted.value_or(pair.monotonic);
        if (converted) clock = answer::StampClock::kKernel;
    }
    deliver(at, net::Received{id_, bytes, clock});
}

void Connection::peer_closed(net::CloseKind kind, std::string text) {
    if (may_send_again()) return send_again();
    if (kind == net::CloseKind::kFin && reset_seen_by_write_) {
        kind = net::CloseKind::kRst;
        text = system_words(ECONNRESET);
    }
    if (speaks_tls_) text = "the server speaks TLS on this port; try https://";
    deliver(now(), net::PeerClosed{id_, kind, std::move(text)});
    close(net::CloseKind::kFin);
}

void Connection::close(net::CloseKind kind, bool keep) {
    if (state_ == State::kClosed) return;
    if (keep && hand_over()) return std::exchange(owner_, nullptr)->over(id_);
    const bool open = state_ == State::kOpen;
    state_ = State::kClosed;
    timer_.reset();
    if (kind == net::CloseKind::kRst && socket_.is_open()) {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        setsockopt(socket_.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    } else if (open) {
        // The FIN goes first, even when unread bytes make the kernel send a reset behind it.
        channel_->say_goodbye();
        ::shutdown(socket_.native_handle(), SHUT_WR);
    }
    abandon_socket();
    std::exchange(owner_, nullptr)->over(id_);
}

// Waiting
// -------------------------------------------------------------------------------------------------

void Connection::want(Io::Status status) {
    status == Io::Status::kWantWrite ? wait_writable() : wait_readable();
}

void Connection::wait_readable() {
    if (std::exchange(waiting_to_read_, true)) return;
    socket_.async_wait(Descriptor::wait_read, [self = shared_from_this(),
                                               attempt = next_address_](const ErrorCode& error) {
        if (attempt != self->next_address_) return;  // of a socket that was given up
        self->waiting_to_read_ = false;
        if (error || self->state_ == State::kClosed) return;
        self->state_ == State::kShaking ? self->shake() : self->pump();
    });
}

void Connection::wait_writable() {
    if (std::exchange(waiting_to_write_, true)) return;
    socket_.async_wait(Descriptor::wait_write, [self = shared_from_this(),
                                                attempt = next_address_](const ErrorCode& error) {
        if (attempt != self->next_address_) return;  // of a socket that was given up
        self->waiting_to_write_ = false;
        if (error || self->state_ == State::kClosed) return;
        if (self->state_ == State::kConnecting) return self->on_connect_ready();
        self->state_ == State::kShaking ? self->shake() : self->pump();
    });
}

void Connection::arm(base::Instant at, void (Connection::*then)()) {
    if (!timer_) timer_ = std::make_unique<SteadyTimer>(socket_.get_executor());
    timer_->expires_at(steady(at));
    timer_->async_wait([self = shared_from_this(), then](const ErrorCode& error) {
        // A timer that was moved may have had its old moment's handler queued already: that one is
        // early.
        if (error || !self->timer_ || std::chrono::steady_clock::now() < self->timer_->expiry())
            return;
        (*self.*then)();
    });
}

void Connection::abandon_socket() {
    channel_.reset();
    waiting_to_read_ = waiting_to_write_ = false;
    ErrorCode ignored;
    socket_.close(ignored);
}

void Connection::deliver(base::Instant at, decltype(net::Event::what) what) {
    if (owner_ == nullptr) return;
    last_at_ = std::max(last_at_, at);
    owner_->deliver({last_at_, std::move(what)});
}

}  // namespace fullstop::adapters::asio
