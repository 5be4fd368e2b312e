// The life of one exchange. Timers are lazy: a read only notes its time, and the watch timer moves
// itself when it fires early, so that a token costs no timer operation.
#include "probe/flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "net/limits.h"

namespace fullstop::probe {
namespace {

const char* word(net::ConnectFailure why) {
    switch (why) {
        case net::ConnectFailure::kResolve: return "name_not_resolved";
        case net::ConnectFailure::kRefused: return "connection_refused";
        case net::ConnectFailure::kUnreachable: return "unreachable";
        case net::ConnectFailure::kTimedOut: return "connect_timed_out";
        case net::ConnectFailure::kTls: return "tls_failed";
        case net::ConnectFailure::kOther: return "connect_failed";
    }
    return "connect_failed";
}

}  // namespace

Flight::Flight(answer::Request request, net::ConnectionId id, Limits limits, base::Instant origin)
    : id_(id), limits_(limits), origin_(origin) {
    record_.request = std::move(request);
    if (record_.request.max_tokens)
        record_.requested_max_tokens = answer::Fact<base::Tokens>::measured(
            *record_.request.max_tokens, "sent with the request");
    if (limits_.deadline)
        record_.client_deadline_ms = answer::Fact<double>::measured(
            base::to_ms(*limits_.deadline), "our own limit on the whole answer, asked for");
    else if (limits_.idle)
        record_.client_deadline_ms = answer::Fact<double>::unavailable(
            fmt::format("none set; our own limit on silence is {:.0f} ms, asked for",
                        base::to_ms(*limits_.idle)));
}

void Flight::start(base::Instant at, const net::Endpoint& endpoint, std::string request_text,
                   net::Actions& out) {
    request_text_ = std::move(request_text);
    record_.timeline.started = since_origin(at);
    out.emplace_back(net::Connect{id_, endpoint, net::kConnectTimeout});
}

void Flight::on(const net::Event& event, net::Actions& out) {
    if (over_) return;
    const base::Instant at = event.at;
    if (std::get_if<net::Connected>(&event.what)) return connected(at, out);
    if (const auto* failed = std::get_if<net::ConnectFailed>(&event.what))
        return connect_failed(at, *failed, out);
    if (std::get_if<net::Sent>(&event.what)) return sent(at, out);
    if (const auto* bytes = std::get_if<net::Received>(&event.what))
        return received(at, *bytes, out);
    if (const auto* closed = std::get_if<net::PeerClosed>(&event.what))
        return peer_closed(at, *closed, out);
    if (const auto* fired = std::get_if<net::TimerFired>(&event.what))
        return timer(at, fired->id, out);
}

void Flight::connected(base::Instant at, net::Actions& out) {
    record_.timeline.connected = since_origin(at);
    reader_.emplace(record_);
    last_activity_ = at;
    out.emplace_back(net::Send{id_, std::exchange(request_text_, {})});
    out.emplace_back(net::SetTimer{watch_timer(id_), next_watch()});
}

void Flight::connect_failed(base::Instant at, const net::ConnectFailed& failed, net::Actions&) {
    record_.timeline.ended = since_origin(at);
    record_.end.transport = answer::Transport::kRefused;
    record_.disconnect = {answer::Disconnect::By::kNone, answer::Disconnect::Kind::kNone, 0};
    record_.server_errors.push_back({.status = std::nullopt,
                                     .code = word(failed.why),
                                     .type = "connect",
                                     .text = failed.text,
                                     .where = answer::ErrorPlace::kHttp});
    over_ = true;
}

void Flight::sent(base::Instant at, net::Actions& out) {
    if (sent_at_) return;
    sent_at_ = at;
    if (at > last_activity_) last_activity_ = at;
    record_.timeline.sent = since_origin(at);
    if (limits_.deadline)
        out.emplace_back(net::SetTimer{deadline_timer(id_), at + *limits_.deadline});
    out.emplace_back(net::SetTimer{watch_timer(id_), next_watch()});
}

void Flight::received(base::Instant at, const net::Received& received, net::Actions& out) {
    if (!reader_) return;
    reader_->bytes(received.bytes, since_origin(at), received.clock);
    last_activity_ = at;
    if (reader_->overflowed() || !reader_->full().empty())
        return end(wire::StreamEnd::Kind::kClosedByUs, at, out);
    if (reader_->complete()) end(wire::StreamEnd::Kind::kClosedByUs, at, out);
}

void Flight::peer_closed(base::Instant at, const net::PeerClosed& closed, net::Actions& out) {
    const auto kind = closed.kind == net::CloseKind::kRst ? wire::StreamEnd::Kind::kRst
                                                          : wire::StreamEnd::Kind::kFin;
    if (closed.kind == net::CloseKind::kRst && !closed.text.empty())
        record_.server_errors.push_back({.status = std::nullopt,
                                         .code = "connection_reset",
                                         .type = "transport",
                                         .text = closed.text,
                                         .where = answer::ErrorPlace::kHttp});
    end(kind, at, out);
}

void Flight::timer(base::Instant at, net::TimerId id, net::Actions& out) {
    if (id == watch_timer(id_)) return watch(at, out);
    if (id == deadline_timer(id_)) client_limit_fired(at, out);
}

void Flight::watch(base::Instant at, net::Actions& out) {
    if (limits_.idle && sent_at_ && at - last_activity_ >= *limits_.idle)
        return client_limit_fired(at, out);
    if (at < next_watch()) {
        out.emplace_back(net::SetTimer{watch_timer(id_), next_watch()});
        return;
    }
    end(wire::StreamEnd::Kind::kTimedOut, at, out);
}

base::Instant Flight::next_watch() const {
    const bool body = record_.timeline.headers.has_value();
    // Before the head the wait counts from the request, so that a head that drips a byte at a time
    // cannot last forever.
    base::Instant next = body ? last_activity_ + net::kSilenceTimeout
                              : sent_at_.value_or(last_activity_) + net::kHeadTimeout;
    if (limits_.idle && sent_at_) next = std::min(next, last_activity_ + *limits_.idle);
    return next;
}

void Flight::client_limit_fired(base::Instant at, net::Actions& out) {
    record_.deadline_fired = answer::DeadlineFired::kClient;
    end(wire::StreamEnd::Kind::kClosedByUs, at, out);
}

void Flight::abandon(base::Instant at, net::Actions& out) {
    if (over_) return;
    if (reader_) return end(wire::StreamEnd::Kind::kClosedByUs, at, out);
    record_.timeline.ended = since_origin(at);  // still connecting: there is nothing to read
    record_.end.transport = answer::Transport::kClosedByUs;
    record_.disconnect = {answer::Disconnect::By::kUs, answer::Disconnect::Kind::kNone, 0};
    out.emplace_back(net::Close{id_, net::CloseKind::kFin});
    over_ = true;
}

void Flight::end(wire::StreamEnd::Kind kind, base::Instant at, net::Actions& out) {
    over_ = true;
    out.emplace_back(net::CancelTimer{watch_timer(id_)});
    if (limits_.deadline) out.emplace_back(net::CancelTimer{deadline_timer(id_)});
    out.emplace_back(net::Close{id_, net::CloseKind::kFin});
    if (!reader_) return;
    reader_->end({kind}, since_origin(at));
    if (const std::string_view limit = reader_->full(); !limit.empty()) over_limit(limit);
    reader_.reset();
}

/// Neither whole nor shortened by anybody: what came is more than an answer may cost us.
void Flight::over_limit(std::string_view limit) {
    record_.end.transport = answer::Transport::kClosedByUs;
    record_.disconnect.by = answer::Disconnect::By::kUs;
    record_.disconnect.kind = answer::Disconnect::Kind::kFin;
    record_.end.error = {.status = record_.status,
                         .code = {},
                         .type = "probe",
                         .text = std::string(limit),
                         .where = answer::ErrorPlace::kHttp};
    record_.server_errors.push_back(*record_.end.error);
}

}  // namespace fullstop::probe
