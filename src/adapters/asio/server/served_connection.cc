// The life of one served connection: request, answer, next request, end.
#include "adapters/asio/server/served_connection.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <random>
#include <string>
#include <utility>

#include "adapters/asio/clock.h"

namespace fullstop::adapters::asio {
namespace {

constexpr std::string_view kNoMemory =
    "too much is held for unfinished requests, and this one is large or does not move; try again";

}  // namespace

ServedConnection::ServedConnection(Loop& loop, ConnectionKeeper& keeper, int fd,
                                   const TlsContext* tls)
    : keeper_(&keeper),
      socket_(loop.context().get_executor(), fd),
      timer_(socket_.get_executor()),
      channel_(tls != nullptr ? tls->channel_from(fd) : plain_channel(fd, false)),
      reader_({.head_bytes = keeper.options().max_head_bytes,
               .body_bytes = keeper.options().max_body_bytes}),
      state_(tls != nullptr ? State::kShaking : State::kReading),
      hold_(keeper.memory(), [this] { let_go_for_others(); }) {}

void ServedConnection::start() {
    arm(state_ == State::kShaking ? keeper_->options().request_timeout : kIdleConnectionTimeout);
    pump();
}

// Requests
// -------------------------------------------------------------------------------------------------

void ServedConnection::pump() {
    if (state_ == State::kShaking && !shake()) return;
    if (!unsent_.empty()) flush();
    if (state_ == State::kReading && !early_.empty()) advance();
    if (state_ != State::kClosed) read_turn();
}

bool ServedConnection::shake() {
    const Io io = channel_->handshake();
    if (io.status == Io::Status::kDone) {
        state_ = State::kReading;
        arm(kIdleConnectionTimeout);
        return true;
    }
    if (io.status == Io::Status::kWantRead) wait_readable();
    if (io.status == Io::Status::kWantWrite) wait_writable();
    if (io.status == Io::Status::kEnd || io.status == Io::Status::kReset) close(false);
    return false;
}

void ServedConnection::read_turn() {
    auto& buffer = keeper_->buffer();
    for (int i = 0; i < kReadsPerTurn; ++i) {
        if (reads_pause() || client_ended_) return;
        std::int64_t stamp = 0;
        const Io io = channel_->read(buffer, stamp);
        if (io.status == Io::Status::kWantRead) return wait_readable();
        if (io.status == Io::Status::kWantWrite) return wait_writable();
        if (io.status == Io::Status::kEnd) return on_end();
        if (io.status == Io::Status::kReset) return lose_client(false);
        if (state_ == State::kLingering) continue;
        take_in({buffer.data(), io.bytes});
        if (state_ == State::kClosed) return;
    }
    pump_soon();
}

void ServedConnection::request_over() {
    if (request_ != 0) keeper_->request_over(std::exchange(request_, 0));
}

void ServedConnection::take_in(std::string_view bytes) {
    early_.append(bytes);
    received_ += bytes.size();
    const bool fits = count();
    if (state_ != State::kReading) return;  // few bytes: the kernel holds what follows
    if (!fits) return refuse(503, kNoMemory);
    if (hold_.bytes() > 0) hold_.moved(bytes.size(), SystemClock().now());
    advance();
}

/// False: there is no room for what this connection holds.
bool ServedConnection::count() {
    const std::size_t bytes = received_ + unsent_.size();
    const std::size_t counted = bytes > kUncountedBytes ? bytes : 0;
    return counted == hold_.bytes() || hold_.resize(counted, SystemClock().now());
}

/// Others need the memory more.
void ServedConnection::let_go_for_others() {
    const auto self = shared_from_this();
    if (state_ == State::kReading) return refuse(503, kNoMemory);
    const net::ConnectionId id = state_ == State::kAnswering ? request_ : 0;
    ConnectionKeeper* keeper = keeper_;
    close(true);
    if (id != 0) keeper->client_dropped(id);
}

/// Gives waiting bytes to the reader, until it wants more, has a request or refuses.
void ServedConnection::advance() {
    RequestReader::Status status = reader_.read(early_);
    if (status == RequestReader::Status::kHead) {
        if (!head_is_wanted()) return;
        status = reader_.read(early_);
    }
    if (status == RequestReader::Status::kRefused)
        return refuse(reader_.refusal_status(), reader_.refusal_text());
    if (status == RequestReader::Status::kMore) {
        if (!std::exchange(request_timed_, true)) arm(keeper_->options().request_timeout);
        if (!reader_.wants_continue()) return;
        unsent_.append("HTTP/1.1 100 Continue\r\n\r\n");
        return flush();
    }
    timer_.cancel();
    state_ = State::kAnswering;
    received_ = early_.size();
    count();
    keeper_->request(reader_.take());
}

/// Shows the head to the service; false when it has answered.
bool ServedConnection::head_is_wanted() {
    request_ = keeper_->new_request(*this);
    state_ = State::kAnswering;
    body_unread_ = reader_.body_follows();
    begun_ = false;
    fitting_.reset();
    if (!keeper_->head(reader_.head(request_)) || state_ != State::kAnswering) return false;
    body_unread_ = false;
    state_ = State::kReading;
    if (keeper_->memory().could_hold(reader_.announced_bytes())) return true;
    refuse(503, kNoMemory);
    return false;
}

void ServedConnection::refuse(int status, std::string_view message) {
    keep_ = false;
    close_kind_ = net::CloseKind::kFin;
    state_ = State::kFlushing;
    request_over();
    std::string id = reader_.request_id();
    if (id.empty()) {
        std::random_device random;
        id = fmt::format("fs-{:08x}{:08x}", random(), random());
    }
    early_ = {};
    reader_.next();
    received_ = 0;
    hold_.release();
    unsent_.append(refusal_response(status, message, id));
    arm(kFlushTimeout);
    flush();
}

// Answers
// -------------------------------------------------------------------------------------------------

void ServedConnection::send(std::string bytes) {
    if (state_ != State::kAnswering) return;
    if (!std::exchange(begun_, true))
        fitting_ = ResponseFitting::of(
            {.knows_chunks = reader_.knows_chunks(), .wants_body = reader_.wants_body()}, bytes);
    if (fitting_) bytes = fitting_->pass(bytes);
    if (bytes.empty()) return;
    // One response of any size may be handed over at once; the bound is on what piles up behind a
    // client that does not read.
    if (!unsent_.empty() && unsent_.size() + bytes.size() > keeper_->options().max_backlog_bytes)
        return lose_client(true);
    unsent_.append(std::move(bytes));
    if (!waiting_to_write_) return flush();
    after_write();
}

void ServedConnection::answered(net::CloseKind kind, bool keep) {
    if (state_ != State::kAnswering) return;
    request_over();
    if (fitting_ && !fitting_->whole()) kind = net::CloseKind::kRst;
    if (fitting_ && fitting_->ends_by_close()) keep = false;
    keep_ = keep && kind == net::CloseKind::kFin && reader_.keep_alive() && !body_unread_ &&
            !client_ended_ && !keeper_->draining();
    close_kind_ = kind;
    lags_ = false;
    state_ = State::kFlushing;
    arm(kFlushTimeout);
    if (unsent_.empty()) flushed();
}

void ServedConnection::flush() {
    flush_some();
    if (state_ != State::kClosed) after_write();
}

void ServedConnection::after_write() {
    if (!count()) return lose_client(true);
    note_lag();
}

/// Tells the service when much waits for the client, and when little does again.
void ServedConnection::note_lag() {
    if (state_ != State::kAnswering) return;
    const bool lags = unsent_.size() > (lags_ ? kLagBytes / 4 : kLagBytes);
    if (std::exchange(lags_, lags) != lags) keeper_->client_lags(request_, lags);
}

void ServedConnection::flush_some() {
    while (!unsent_.empty()) {
        const Io io = channel_->write(unsent_.view());
        if (io.status == Io::Status::kDone) {
            unsent_.consume(io.bytes);
            if (hold_.bytes() > 0) hold_.moved(io.bytes, SystemClock().now());
            if (state_ == State::kFlushing) arm(kFlushTimeout);
            continue;
        }
        if (io.status == Io::Status::kWantWrite) wait_writable();
        if (io.status == Io::Status::kEnd || io.status == Io::Status::kReset) lose_client(false);
        return;
    }
    if (state_ == State::kFlushing) flushed();
}

/// The kernel has the whole response: what now?
void ServedConnection::flushed() {
    if (keep_) {
        reader_.next();
        if (early_.empty()) early_ = {};
        request_timed_ = false;
        waiting_since_ = std::chrono::steady_clock::now();
        state_ = State::kReading;
        arm(kIdleConnectionTimeout);
        return pump_soon();
    }
    if (close_kind_ == net::CloseKind::kRst || client_ended_)
        return close(close_kind_ == net::CloseKind::kRst);
    // Closing with unread bytes would reset the connection and may take the answer with it: our FIN
    // first, then read on until the client closes too.
    channel_->say_goodbye();
    ::shutdown(socket_.native_handle(), SHUT_WR);
    state_ = State::kLingering;
    early_ = {};
    received_ = 0;
    arm(kLingerTimeout);
    pump_soon();
}

// Ends
// -------------------------------------------------------------------------------------------------

void ServedConnection::on_end() {
    client_ended_ = true;
    if (state_ == State::kAnswering && keeper_->options().half_close_is_leaving)
        return lose_client(false);
    // While an answer is still to be written, the write will tell whether the client is really
    // gone.
    if (state_ != State::kAnswering && state_ != State::kFlushing) close(false);
}

void ServedConnection::lose_client(bool reset) {
    const bool running = state_ == State::kAnswering;
    const net::ConnectionId id = request_;
    ConnectionKeeper* keeper = keeper_;
    close(reset);
    if (running) keeper->client_left(id);
}

void ServedConnection::close_if_idle() {
    if (state_ == State::kReading && early_.empty() && !reader_.has_begun()) close(false);
}

void ServedConnection::make_room() { close(false); }

void ServedConnection::drop() { close(true); }

void ServedConnection::close(bool reset) {
    if (state_ == State::kClosed) return;
    state_ = State::kClosed;
    if (reset) {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        setsockopt(socket_.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    timer_.cancel();
    channel_.reset();
    unsent_.clear();
    hold_ = {};
    request_over();
    ErrorCode ignored;
    socket_.close(ignored);
    std::exchange(keeper_, nullptr)->closed(*this);
}

void ServedConnection::on_timeout() {
    switch (state_) {
        case State::kReading:
            if (request_timed_) return refuse(408, "the request did not come whole in time");
            return close(false);
        case State::kShaking:
        case State::kFlushing: return close(true);
        default: return close(false);
    }
}

// Waiting
// -------------------------------------------------------------------------------------------------

void ServedConnection::wait_readable() {
    if (std::exchange(waiting_to_read_, true)) return;
    socket_.async_wait(Descriptor::wait_read, [self = shared_from_this()](const ErrorCode& error) {
        self->waiting_to_read_ = false;
        if (!error && self->state_ != State::kClosed) self->pump();
    });
}

void ServedConnection::wait_writable() {
    if (std::exchange(waiting_to_write_, true)) return;
    socket_.async_wait(Descriptor::wait_write, [self = shared_from_this()](const ErrorCode& error) {
        self->waiting_to_write_ = false;
        if (!error && self->state_ != State::kClosed) self->pump();
    });
}

/// In the loop's next turn: neither recursion over pipelined requests nor one client before all
/// others.
void ServedConnection::pump_soon() {
    ::boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
        if (self->state_ != State::kClosed) self->pump();
    });
}

void ServedConnection::arm(base::Duration in) {
    timer_.expires_after(in);
    timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
        if (error || self->state_ == State::kClosed || self->state_ == State::kAnswering) return;
        if (std::chrono::steady_clock::now() >= self->timer_.expiry()) self->on_timeout();
    });
}

}  // namespace fullstop::adapters::asio
