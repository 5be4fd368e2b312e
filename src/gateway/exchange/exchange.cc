// On the way: waiting, sending, relaying, heartbeats. How a response begins stands in
// exchange_head.cc, how it ends in exchange_end.cc.
#include "gateway/exchange/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "gateway/limits.h"
#include "gateway/request/request_head.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {

Exchange::Exchange(net::ServiceRequest request, std::string request_id, Work work, Terms terms,
                   base::Instant now)
    : request_(std::move(request)),
      asked_bytes_(request_.body.size()),
      request_id_(std::move(request_id)),
      work_(std::move(work)),
      total_(terms.deadlines.total),
      heartbeat_(work_.answer && work_.sse ? terms.heartbeat : std::nullopt),
      retry_(terms.retry),
      own_keys_(terms.own_keys),
      reads_(request_.method == "POST"),
      clocks_(terms.deadlines, work_.answer && work_.stream, now),
      now_(now),
      client_(request_, error_shape(work_.path), now) {
    if (terms.continuation)
        parts_.continuation = Continuation::of(work_, request_.body, work_.max_tokens);
}

void Exchange::limit_output(const OutputLimit& limit) {
    request_.body = with_max_tokens(request_.body, work_.path, work_.limits, limit.max_tokens);
    limit_ = limit;
    if (parts_.continuation)
        parts_.continuation = Continuation::of(work_, request_.body, max_tokens());
}

// Where it goes
// -------------------------------------------------------------------------------------------------

void Exchange::send_to(UpstreamId id, const Upstream& upstream, std::int64_t need, bool others,
                       base::Instant at) {
    now_ = at;
    state_ = State::kOpen;
    attempt_ = std::make_unique<Attempt>(
        id, upstream, need, others,
        between_parts() ? Attempt::Asks::kTemplate : Attempt::Asks::kAnswer,
        between_parts() ? parts_.continuation->tokens_left() : max_tokens());
    if (own_keys_) request_.headers.erase("authorization");
    if (own_keys_ && !upstream.options().api_key.empty())
        request_.headers["authorization"] = "Bearer " + upstream.options().api_key;
    tried_.insert(id);
    clocks_.dispatched(at);
    parts_.template_reply.clear();
}

void Exchange::back_in_queue() {
    FULLSTOP_ASSERT(wants_another(), "only what wants another attempt waits again");
    state_ = State::kOpen;
    clocks_.back_in_queue();
    attempt_->leave();
}

net::Send Exchange::first_bytes(net::ConnectionId connection) {
    if (attempt_->asks() == Attempt::Asks::kTemplate) return {connection, template_request()};
    if (body().size() <= net::kSmallHoldBytes)
        return {connection, upstream_request(request_, attempt_->url(), request_id_)};  // one write
    if (!large_body_)
        large_body_ = std::make_shared<const std::string>(std::exchange(request_.body, {}));
    return {connection, upstream_head(request_, attempt_->url(), request_id_, large_body_->size()),
            large_body_};
}

// What comes
// -------------------------------------------------------------------------------------------------

void Exchange::read_copy(std::string_view bytes) {
    if (!reads_) return;
    attempt_->read(bytes, since_arrival());
    if (record().timeline.first_token) clocks_.first_token();
}

void Exchange::received(std::string_view bytes, base::Instant at, std::string& out) {
    FULLSTOP_ASSERT(!over(), "an exchange that is over hears nothing more");
    now_ = at;
    clocks_.moved(at);
    if (attempt_->asks() == Attempt::Asks::kTemplate) return read_template(bytes, out);
    const wire::HttpFraming& framing = attempt_->framing();
    const std::string_view all = bytes;
    std::string body;
    while (!bytes.empty() && !framing.complete()) {
        const std::size_t before = bytes.size();
        const std::string_view piece = attempt_->next(bytes, !begun());
        if (framing.overflowed())
            return finish(Stop::kTooLarge, "the upstream's response head is too large", out);
        if (framing.malformed()) {
            // What follows is not passed on, so what it says must not count as said.
            read_copy(all.substr(0, all.size() - before));
            relay(body, out);
            return finish(Stop::kMalformed,
                          begun() ? "the upstream's chunk framing is broken"
                                  : "the upstream's bytes are not an HTTP response",
                          out);
        }
        if (framing.head_complete() && !begun() && !take_head(out)) return;
        if (client_.head_only() && begun()) break;
        body += piece;
    }
    relay(body, out);
    if (parts_.continuation && !parts_.continuation->failure().empty())
        return finish(Stop::kMalformed, parts_.continuation->failure(), out);
    unread_ = all.substr(0, all.size() - bytes.size());
    // An end that is held back goes on as soon as it is true, and does not wait for the framing.
    if (client_.holds_end()) {
        read_copy(std::exchange(unread_, {}));
        if (attempt_->own_end() == wire::OwnEnd::kTrue) client_.let_end_go(now_, out);
    }
    if (client_.holds_end() && client_.held_bytes() > kMaxHeldEndBytes)
        return finish(
            Stop::kTooLarge,
            "the stream did not say how the answer ended, and went on for longer than the "
            "gateway holds back",
            out);
    upstream_reusable_ = framing.complete() && bytes.empty() && stays_open(attempt_->head());
    if (!framing.complete() && !(client_.head_only() && begun())) return;
    read_copy(std::exchange(unread_, {}));
    finish(Stop::kFramed, "", out);
}

void Exchange::read_on(std::string& out) {
    read_copy(std::exchange(unread_, {}));
    if (work_.answer && attempt_->overflowed())
        return finish(Stop::kTooLarge, "one event is larger than the gateway reads", out);
    if (!hold_reading() && work_.answer)
        finish(Stop::kTooLarge, "other answers hold too much memory to read one this large", out);
}

/// What the reader keeps of an event that is not whole; false when there is no room for it.
bool Exchange::hold_reading() {
    const std::size_t kept = begun() ? attempt_->held_bytes() : 0;
    const std::size_t counted = continuation_bytes_ + (kept > net::kSmallHoldBytes ? kept : 0);
    return !begun() || counted == kept_.bytes() || kept_.resize(counted, now_);
}

void Exchange::relay(std::string_view bytes, std::string& out) {
    const bool whole_events = parts_.continuation && client_.form() == BodyForm::kSse &&
                              client_.is_chunked() &&
                              client_.state() != ClientResponse::State::kWithheld;
    const std::string events = whole_events ? parts_.continuation->pass(bytes) : std::string();
    const std::string_view body = whole_events ? std::string_view(events) : bytes;
    if (client_.state() == ClientResponse::State::kRelaying && attempt_->close_delimited() &&
        (client_.form() == BodyForm::kJson || client_.form() == BodyForm::kLines))
        attempt_->follow_json(body);
    client_.pass(body, now_, out);
}

void Exchange::hold(bool on, base::Instant at) {
    lags_ = on;
    clocks_.moved(at);
}

// Time
// -------------------------------------------------------------------------------------------------

std::optional<base::Instant> Exchange::next_heartbeat() const {
    using State = ClientResponse::State;
    if (!heartbeat_ || lags_ || client_.state() == State::kWithheld) return std::nullopt;
    // Behind the first byte of a body a comment could fall into the middle of an event.
    if (client_.relayed() > 0 && !between_parts()) return std::nullopt;
    if (begun() && (client_.form() != BodyForm::kSse || !client_.is_chunked())) return std::nullopt;
    return client_.last_sent() + *heartbeat_;
}

std::optional<base::Instant> Exchange::next_time(base::Instant now) const {
    std::optional<base::Instant> next = next_heartbeat();
    if (const auto clock = clocks_.next(now); clock && (!next || clock->at < *next))
        next = clock->at;
    return next;
}

void Exchange::on_time(base::Instant now, std::string& out) {
    FULLSTOP_ASSERT(!over(), "an exchange that is over hears nothing more");
    if (const auto clock = clocks_.next(now); clock && clock->at <= now) {
        cut_by_ = CutBy{.limit = std::string(to_string(clock->limit)),
                        .allowed = clock->allowed,
                        .elapsed = clock->elapsed};
        return stopped(clock->limit == Limit::kIdle ? Stop::kIdle : Stop::kDeadline, "", now, out);
    }
    const auto beat = next_heartbeat();
    if (!beat || *beat > now) return;
    now_ = now;
    // A head of our own, so that comments can follow while there is nothing else to say.
    if (!client_.has_head()) {
        wire::Headers headers = own_headers();
        headers.emplace_back("Fullstop-Heartbeat-Ms",
                             fmt::format("{:.0f}", base::to_ms(*heartbeat_)));
        client_.give_own_head(std::move(headers), out);
    }
    client_.comment(clocks_.waiting() ? "waiting in the queue" : "waiting for the first token", now,
                    out);
}

}  // namespace fullstop::gateway
