// One request in the air: connect, send, read, and end in exactly one way. Turns network events
// into the moments and end facts of one Record; what a byte means is the AnswerReader's business,
// when the next request goes out the Probe's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "answer/record.h"
#include "net/event.h"
#include "wire/answer_reader.h"

namespace fullstop::probe {

class Flight {
public:
    struct Limits {
        std::optional<base::Duration> deadline;  ///< from sent to the end, only if asked for
        std::optional<base::Duration> idle;      ///< silence between reads, only if asked for
    };

    /// Moments of the record are relative to `origin`.
    Flight(answer::Request request, net::ConnectionId id, Limits limits, base::Instant origin);
    Flight(const Flight&) = delete;  // the reader points into the record
    Flight& operator=(const Flight&) = delete;

    void start(base::Instant at, const net::Endpoint& endpoint, std::string request_text,
               net::Actions& out);
    /// Every event of this connection and its two timers.
    void on(const net::Event& event, net::Actions& out);
    /// The whole experiment ends now: closes; the record ends closed_by_us.
    void abandon(base::Instant at, net::Actions& out);

    /// The record is final: its user is free. A response that is whole by its own framing ends at
    /// once, without waiting for the peer's FIN: a keep-alive server would never send one, and
    /// nobody has broken anything off.
    bool over() const { return over_; }
    answer::Record take() { return std::move(record_); }

    static net::TimerId watch_timer(net::ConnectionId id) { return id * 2; }
    static net::TimerId deadline_timer(net::ConnectionId id) { return id * 2 + 1; }

private:
    void connected(base::Instant at, net::Actions& out);
    void connect_failed(base::Instant at, const net::ConnectFailed& failed, net::Actions& out);
    void sent(base::Instant at, net::Actions& out);
    void received(base::Instant at, const net::Received& received, net::Actions& out);
    void peer_closed(base::Instant at, const net::PeerClosed& closed, net::Actions& out);
    void timer(base::Instant at, net::TimerId id, net::Actions& out);
    void watch(base::Instant at, net::Actions& out);
    base::Instant next_watch() const;
    void client_limit_fired(base::Instant at, net::Actions& out);
    /// Ends the record and closes our side.
    void end(wire::StreamEnd::Kind kind, base::Instant at, net::Actions& out);
    void over_limit(std::string_view limit);
    base::Duration since_origin(base::Instant at) const { return at - origin_; }

    answer::Record record_;
    net::ConnectionId id_;
    Limits limits_;
    base::Instant origin_;
    std::string request_text_;
    std::optional<wire::AnswerReader> reader_;
    std::optional<base::Instant> sent_at_;
    base::Instant last_activity_{};
    bool over_ = false;
};

}  // namespace fullstop::probe
