// On the way: waiting, sending, relaying, heartbeats. How it ends stands in exchange_end.cc.
#include "gateway/exchange/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "gateway/limits.h"
#include "gateway/request/request_head.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {
namespace {

/// Which ends a stream may have that are held back, if any.
std::optional<HeldEnd> held_end_of(const Work& work, BodyForm form) {
    if (form == BodyForm::kLines && work.answer) return HeldEnd(HeldEnd::By::kLine);
    if (form != BodyForm::kSse) return std::nullopt;
    return HeldEnd(work.answer && error_shape(work.path) != ErrorShape::kPlain
                       ? HeldEnd::By::kEventType
                       : HeldEnd::By::kDone);
}

}  // namespace

Exchange::Exchange(net::ServiceRequest request, std::string request_id, Work work, Terms terms,
                   base::Instant now)
    : request_(std::move(request)),
      asked_bytes_(request_.body.size()),
      request_id_(std::move(request_id)),
      work_(std::move(work)),
      shape_(error_shape(work_.path)),
      total_(terms.deadlines.total),
      heartbeat_(work_.answer && work_.sse ? terms.heartbeat : std::nullopt),
      terms_retry_(terms.retry),
      own_keys_(terms.own_keys),
      head_only_(request_.method == "HEAD"),
      keep_alive_(!wants_close(request_)),
      close_asked_(wants_close(request_)),
      reads_(request_.method == "POST"),
      clocks_(terms.deadlines, work_.answer && work_.stream, now),
      now_(now),
      sent_(now) {
    if (terms.continuation) continuation_ = Continuation::of(request_, work_);
}

void Exchange::limit_output(const OutputLimit& limit) {
    request_.body = with_max_tokens(request_.body, work_.path, work_.limits, limit.max_tokens);
    limit_ = limit;
    if (continuation_) continuation_ = Continuation::of(request_, work_);
}

// Where it goes
// -------------------------------------------------------------------------------------------------

void Exchange::send_to(UpstreamId id, const Upstream& upstream, std::int64_t need, bool others,
                       base::Instant at) {
    upstream_ = id;
    url_ = upstream.options().url;
    upstream_name_ = upstream.name();
    if (own_keys_) request_.headers.erase("authorization");
    if (own_keys_ && !upstream.options().api_key.empty())
        request_.headers["authorization"] = "Bearer " + upstream.options().api_key;
    need_ = need;
    others_ = others;
    wants_another_ = false;
    tried_.insert(id);
    clocks_.dispatched(at);
    now_ = at;
    framing_ = {};
    raw_head_.clear();
    record_ = {};
    if (const auto asked = between_parts() ? continuation_->tokens_left() : max_tokens();
        asked && *asked < kMostTokens)
        record_.requested_max_tokens =
            answer::Fact<base::Tokens>::measured({*asked}, "the limit in the request");
    reader_ = std::make_unique<wire::AnswerReader>(record_);
    asks_template_ = between_parts();
    template_reply_.clear();
}

void Exchange::back_in_queue() {
    clocks_.back_in_queue();
    upstream_ = 0;
    upstream_name_.clear();
    wants_another_ = false;
}

net::Send Exchange::first_bytes(net::ConnectionId connection) {
    if (asks_template_) return {connection, template_request()};
    if (body().size() <= net::kSmallHoldBytes)
        return {connection, upstream_request(request_, url_, request_id_)};  // one write
    if (!large_body_)
        large_body_ = std::make_shared<const std::string>(std::exchange(request_.body, {}));
    return {connection, upstream_head(request_, url_, request_id_, large_body_->size()),
            large_body_};
}

// What comes
// -------------------------------------------------------------------------------------------------

/// Only the facts of the end are wanted: what a long answer says is not kept.
void Exchange::read_copy(std::string_view bytes) {
    if (!reads_) return;
    reader_->bytes(bytes, now_ - clocks_.arrived(), answer::StampClock::kUserSpace);
    if (record_.timeline.first_token) clocks_.first_token();
    record_.capture.bytes.clear();
    record_.capture.arrivals.clear();
    record_.text.clear();
    record_.reasoning.clear();
    record_.tool_calls.clear();
    record_.timeline.gaps.clear();
}

void Exchange::received(std::string_view bytes, base::Instant at, std::string& out) {
    FULLSTOP_ASSERT(!over(), "an exchange that is over hears nothing more");
    now_ = at;
    clocks_.moved(at);
    if (asks_template_) return read_template(bytes, out);
    const std::string_view all = bytes;
    std::string body;
    while (!bytes.empty() && !framing_.complete()) {
        const std::string_view before = bytes;
        const std::string_view piece = framing_.next(bytes);
        if (!begun_) raw_head_.append(before.substr(0, before.size() - bytes.size()));
        if (framing_.overflowed())
            return finish(Stop::kTooLarge, "the upstream's response head is too large", out);
        if (framing_.malformed()) {
            // What follows is not passed on, so what it says must not count as said.
            read_copy(all.substr(0, all.size() - before.size()));
            relay(body, out);
            return finish(Stop::kMalformed,
                          begun_ ? "the upstream's chunk framing is broken"
                                 : "the upstream's bytes are no HTTP response",
                          out);
        }
        if (framing_.head_complete() && !begun_) {
            if (auto unfit = unfit_head())
                return finish(unfit->first, std::move(unfit->second), out);
            if (framing_.head().status == 503 && may_try_elsewhere()) {
                wants_another_ = true;
                return;
            }
            begin_response(out);
        }
        if (head_only_ && begun_) break;
        body += piece;
    }
    relay(body, out);
    if (continuation_ && !continuation_->failure().empty())
        return finish(Stop::kMalformed, continuation_->failure(), out);
    unread_ = all.substr(0, all.size() - bytes.size());
    if (held_end_ && held_end_->ended()) read_held_end(out);
    if (held_end_ && held_end_->ended() && held_end_->held().size() > kMaxHeldEndBytes)
        return finish(Stop::kTooLarge,
                      "an end that does not say how the answer ended, and more behind it than the "
                      "gateway holds back",
                      out);
    upstream_reusable_ = framing_.complete() && bytes.empty() && stays_open(framing_.head());
    if (!framing_.complete() && !(head_only_ && begun_)) return;
    read_copy(std::exchange(unread_, {}));
    finish(Stop::kFramed, "", out);
}

void Exchange::read_on(std::string& out) {
    read_copy(std::exchange(unread_, {}));
    if (work_.answer && reader_->overflowed())
        return finish(Stop::kTooLarge, "one event is larger than the gateway reads", out);
    if (!hold_reading() && work_.answer)
        finish(Stop::kTooLarge, "too much is held for other answers to read one this large", out);
}

/// What the reader keeps of an event that is not whole; false when there is no room for it.
bool Exchange::hold_reading() {
    const std::size_t kept = begun_ ? reader_->held_bytes() : 0;
    const std::size_t counted = continuation_bytes_ + (kept > net::kSmallHoldBytes ? kept : 0);
    return !begun_ || counted == kept_.bytes() || kept_.resize(counted, now_);
}

void Exchange::begin_response(std::string& out) {
    request_.body = {};  // no further attempt
    large_body_.reset();
    kept_.resize(continuation_bytes_, now_);
    if (between_parts() || committed_) {
        begun_ = true;
        return between_parts() ? declare_seam(out) : begin_behind_heartbeats(out);
    }
    form_ = announced_form(framing_.head());
    client_framing_ = client_framing(framing_.head(), framing_.framing(), head_only_);
    if (const int status = framing_.head().status; reads_ && status >= 200 && status < 300)
        held_end_ = held_end_of(work_, form_);
    wire::Headers ours = own_headers();
    if (close_asked_ && client_framing_ != ClientFraming::kUntilClose)
        ours.emplace_back("Connection", "close");
    out += client_head(raw_head_, framing_.head(), client_framing_, ours);
    begun_ = true;  // not before the head is out: a fault until then may still be told by a status
    raw_head_ = {};
    sent_ = now_;
}

/// The client has a head already: what this one says goes into a comment, and a body that is no
/// stream waits for its end.
void Exchange::begin_behind_heartbeats(std::string& out) {
    const int status = framing_.head().status;
    out += wire::chunk(
        wire::sse_comment(fmt::format("fullstop upstream={} status={} queue_ms={:.0f}",
                                      upstream_name_, status, base::to_ms(queued(now_)))));
    if (status < 200 || status >= 300 || announced_form(framing_.head()) != BodyForm::kSse)
        late_.emplace();
    if (!late_) held_end_ = held_end_of(work_, form_);
    raw_head_ = {};
}

/// A head of our own, so that comments can follow while there is nothing else to say.
void Exchange::commit(base::Instant now, std::string& out) {
    now_ = now;
    committed_ = true;
    form_ = BodyForm::kSse;
    client_framing_ = ClientFraming::kChunked;
    wire::Headers headers = own_headers();
    headers.emplace_back("Fullstop-Heartbeat-Ms", fmt::format("{:.0f}", base::to_ms(*heartbeat_)));
    if (close_asked_) headers.emplace_back("Connection", "close");
    out += wire::stream_head("text/event-stream", headers);
}

wire::Headers Exchange::own_headers() const {
    wire::Headers out = {{"X-Request-Id", request_id_}};
    if (!upstream_name_.empty()) out.emplace_back("Fullstop-Upstream", upstream_name_);
    if (tried_.size() > 1) out.emplace_back("Fullstop-Attempts", std::to_string(tried_.size()));
    if (total_)
        out.emplace_back("Fullstop-Deadline-Ms", fmt::format("{:.0f}", base::to_ms(*total_)));
    if (work_.answer && !clocks_.waiting())
        out.emplace_back("Fullstop-Queue-Ms", fmt::format("{:.0f}", base::to_ms(queued(now_))));
    if (limit_) {
        out.emplace_back("Fullstop-Requested-Max-Tokens",
                         work_.max_tokens && *work_.max_tokens < kMostTokens
                             ? std::to_string(*work_.max_tokens)
                             : "none");
        out.emplace_back("Fullstop-Effective-Max-Tokens", std::to_string(limit_->max_tokens));
        out.emplace_back("Fullstop-Policy", fmt::format("max_tokens changed to {} by {}",
                                                        limit_->max_tokens, limit_->name));
        return out;
    }
    const auto asked = reported(record_.requested_max_tokens);
    if (!asked) return out;
    out.emplace_back("Fullstop-Requested-Max-Tokens", std::to_string(*asked));
    // An upstream that announces a limit of its own knows better.
    if (!framing_.head().headers.contains("fullstop-effective-max-tokens"))
        out.emplace_back("Fullstop-Effective-Max-Tokens", std::to_string(*asked));
    return out;
}

void Exchange::relay(std::string_view bytes, std::string& out) {
    const bool whole_events = continuation_ && form_ == BodyForm::kSse &&
                              client_framing_ == ClientFraming::kChunked && !late_;
    const std::string events = whole_events ? continuation_->pass(bytes) : std::string();
    const std::string_view body = whole_events ? std::string_view(events) : bytes;
    if (late_) {
        late_->append(
            body.substr(0, kMaxLateErrorBytes - std::min(kMaxLateErrorBytes, late_->size())));
        return;
    }
    if (framing_.framing() == answer::Framing::kUntilClose &&
        (form_ == BodyForm::kJson || form_ == BodyForm::kLines))
        json_.feed(body);
    if (held_end_)
        pass_to_client(held_end_->pass(body), out);
    else
        pass_to_client(body, out);
}

void Exchange::pass_to_client(std::string_view body, std::string& out) {
    if (body.empty()) return;
    relayed_ += body.size();
    sent_ = now_;
    tail_.append(body.substr(body.size() - std::min(body.size(), kTailBytes)));
    if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
    if (client_framing_ == ClientFraming::kChunked)
        out += wire::chunk(body);
    else
        out += body;
}

void Exchange::hold(bool on, base::Instant at) {
    held_ = on;
    clocks_.moved(at);
}

// Time
// -------------------------------------------------------------------------------------------------

std::optional<base::Instant> Exchange::next_heartbeat() const {
    // Behind the first byte of a body a comment could fall into the middle of an event.
    if (!heartbeat_ || held_ || (relayed_ > 0 && !between_parts()) || late_ ||
        (begun_ && !committed_ && form_ != BodyForm::kSse))
        return std::nullopt;
    if (begun_ && client_framing_ != ClientFraming::kChunked) return std::nullopt;
    return sent_ + *heartbeat_;
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
    if (const auto beat = next_heartbeat(); beat && *beat <= now) {
        if (!committed_ && !begun_) commit(now, out);
        out += wire::chunk(wire::sse_comment(clocks_.waiting() ? "waiting in the queue"
                                                               : "waiting for the first token"));
        sent_ = now;
    }
}

}  // namespace fullstop::gateway
