// Framing in, framing out; the judgement in between is truth.cc's.
#include "gateway/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "gateway/limits.h"
#include "gateway/request_head.h"
#include "wire/response_text.h"

namespace fullstop::gateway {
namespace {

/// As many bytes as the end of an event can have.
constexpr std::size_t kTailBytes = 4;

std::string seconds(base::Duration d) { return fmt::format("{:.1f} s", base::to_seconds(d)); }

wire::StreamEnd::Kind as_stream_end(Stop stop) {
    switch (stop) {
        case Stop::kRst: return wire::StreamEnd::Kind::kRst;
        case Stop::kIdle: return wire::StreamEnd::Kind::kTimedOut;
        case Stop::kFramed:
        case Stop::kFin: return wire::StreamEnd::Kind::kFin;
        default: return wire::StreamEnd::Kind::kClosedByUs;
    }
}

std::optional<std::int64_t> count(const answer::Fact<base::Tokens>& fact) {
    if (!fact) return std::nullopt;
    return (*fact).count;
}

}  // namespace

Exchange::Exchange(const Route& route, const net::ServiceRequest& request, std::string request_id, base::Instant now)
    : route_(&route),
      request_(upstream_request(request, route.upstream, request_id)),
      request_id_(std::move(request_id)),
      head_only_(request.method == "HEAD"),
      keep_alive_(!wants_close(request)),
      close_asked_(wants_close(request)),
      answer_expected_(request.method == "POST" && is_answer_path(request.target)),
      reads_(request.method == "POST"),
      started_(now),
      last_byte_(now),
      now_(now),
      reader_(record_) {
    if (const auto asked = reads_ ? requested_max_tokens(request.body) : std::nullopt)
        record_.requested_max_tokens = answer::Fact<base::Tokens>::measured({*asked}, "the limit in the request");
}

/// Only the facts of the end are wanted: what a long answer says is not kept.
void Exchange::read_copy(std::string_view bytes) {
    if (!reads_) return;
    reader_.bytes(bytes, now_ - started_, answer::StampClock::kUserSpace);
    record_.capture.bytes.clear();
    record_.capture.arrivals.clear();
    record_.text.clear();
    record_.reasoning.clear();
    record_.tool_calls.clear();
    record_.timeline.gaps.clear();
}

void Exchange::received(std::string_view bytes, base::Instant at, std::string& out) {
    FULLSTOP_ASSERT(!over(), "an exchange that is over hears nothing more");
    last_byte_ = now_ = at;
    const std::string_view all = bytes;
    std::string body;
    while (!bytes.empty() && !framing_.complete()) {
        const std::string_view before = bytes;
        const std::string_view piece = framing_.next(bytes);
        if (!begun_) raw_head_.append(before.substr(0, before.size() - bytes.size()));
        if (framing_.overflowed()) return finish(Stop::kTooLarge, "the upstream's response head is too large", out);
        if (framing_.malformed()) {
            // What follows is not passed on, so what it says must not count as said.
            read_copy(all.substr(0, all.size() - before.size()));
            relay(body, out);
            return finish(Stop::kMalformed, begun_ ? "the upstream's chunk framing is broken" : "the upstream's bytes are no HTTP response", out);
        }
        if (framing_.head_complete() && !begun_) {
            if (untrusted_length(framing_.head())) return finish(Stop::kMalformed, "the upstream's content-length cannot be trusted", out);
            if (framing_.head().status == 101) return finish(Stop::kMalformed, "the upstream switched protocols unasked", out);
            begin_response(out);
        }
        if (head_only_ && begun_) break;
        body += piece;
    }
    read_copy(all.substr(0, all.size() - bytes.size()));
    relay(body, out);
    upstream_reusable_ = framing_.complete() && bytes.empty() && stays_open(framing_.head());
    if (framing_.complete() || (head_only_ && begun_)) return finish(Stop::kFramed, "", out);
    if (answer_expected_ && reader_.overflowed()) finish(Stop::kTooLarge, "one event is larger than the gateway reads", out);
}

void Exchange::begin_response(std::string& out) {
    begun_ = true;
    form_ = announced_form(framing_.head());
    client_framing_ = client_framing(framing_.head(), framing_.framing(), head_only_);
    wire::Headers ours = own_headers();
    if (close_asked_ && client_framing_ != ClientFraming::kUntilClose) ours.emplace_back("Connection", "close");
    out += client_head(raw_head_, framing_.head(), client_framing_, ours);
    raw_head_ = {};
}

wire::Headers Exchange::own_headers() const {
    wire::Headers out = {{"X-Request-Id", request_id_}, {"Fullstop-Upstream", route_->name}};
    if (route_->idle) out.emplace_back("Fullstop-Deadline-Ms", fmt::format("{:.0f}", base::to_ms(*route_->idle)));
    if (!record_.requested_max_tokens) return out;
    const std::string limit = std::to_string((*record_.requested_max_tokens).count);
    out.emplace_back("Fullstop-Requested-Max-Tokens", limit);
    // An upstream that announces a limit of its own knows better.
    if (!framing_.head().headers.contains("fullstop-effective-max-tokens")) out.emplace_back("Fullstop-Effective-Max-Tokens", limit);
    return out;
}

void Exchange::relay(std::string_view body, std::string& out) {
    if (body.empty()) return;
    relayed_ += body.size();
    tail_.append(body.substr(body.size() - std::min(body.size(), kTailBytes)));
    if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
    if (client_framing_ == ClientFraming::kChunked)
        out += wire::chunk(body);
    else
        out += body;
}

void Exchange::hold(bool on, base::Instant at) {
    held_ = on;
    last_byte_ = at;
}

void Exchange::stopped(Stop stop, std::string_view words, base::Instant at, std::string& out) {
    FULLSTOP_ASSERT(!over(), "an exchange that is over hears nothing more");
    now_ = at;
    finish(stop, describe(stop, words), out);
}

std::string Exchange::describe(Stop stop, std::string_view words) const {
    const std::string when = fmt::format("{} after the request", seconds(now_ - started_));
    const std::string where = !begun_ ? "before its head" : framing_.missing_bytes() > 0 ? "inside the body" : "before the end of the body";
    switch (stop) {
        case Stop::kFin: return fmt::format("the upstream closed its connection {}, {}", where, when);
        case Stop::kRst: return fmt::format("the upstream reset its connection {}, {} ({})", where, when, words.substr(0, kMaxDetailBytes));
        case Stop::kIdle:
            return fmt::format("no byte {} for {} (limit {}), {}", held_ ? "was taken by the client" : "from the upstream", seconds(now_ - last_byte_),
                               seconds(route_->idle.value_or(base::Duration{})), when);
        default: return std::string(words);
    }
}

void Exchange::not_connected(net::ConnectFailure why, std::string_view words, base::Instant at, std::string& out) {
    now_ = at;
    End end = end_before_head(Stop::kFin, fmt::format("no connection to the upstream {}: {}", route_->name, words.substr(0, kMaxDetailBytes)));
    // Nobody listens where a server should: its process is gone. Everything else may lie on the way.
    if (why == net::ConnectFailure::kRefused) end.cause = answer::Cause::kEngineDeath;
    fail_before_head(std::move(end), why == net::ConnectFailure::kTimedOut ? 504 : 502, out);
}

void Exchange::finish(Stop stop, std::string detail, std::string& out) {
    if (reads_) reader_.end({as_stream_end(stop)}, now_ - started_);
    if (!begun_) {
        End end = end_before_head(stop, std::move(detail));
        const int status = status_before_head(end, stop);
        return fail_before_head(std::move(end), status, out);
    }
    const int status = framing_.head().status;
    end_ = judge_end({.record = record_,
                      .dialect = reads_ ? reader_.dialect() : std::nullopt,
                      .answer_expected = answer_expected_,
                      .success = status >= 200 && status < 300,
                      .close_delimited = framing_.framing() == answer::Framing::kUntilClose,
                      .form = form_,
                      .inside_event = inside_event(form_, tail_),
                      .stop = stop,
                      .detail = std::move(detail)});
    if (client_framing_ != ClientFraming::kChunked) return;
    if (end_->say) out += wire::chunk(in_band(error_body(*end_, numbers()), form_, tail_));
    if (end_->whole) out += wire::last_chunk();
}

void Exchange::fail_before_head(End end, int status, std::string& out) {
    wire::Headers headers = own_headers();
    if (!close_asked_) headers.emplace_back("Connection", "keep-alive");
    const std::string whole = wire::whole_response(status, "application/json", error_body(end, numbers()), headers);
    out += head_only_ ? std::string_view(whole).substr(0, whole.find("\r\n\r\n") + 4) : std::string_view(whole);
    end.whole = true;  // this response is the gateway's own, and complete
    end_ = std::move(end);
}

AnswerNumbers Exchange::numbers() const {
    AnswerNumbers out{.request_id = request_id_,
                      .max_tokens = count(record_.requested_max_tokens),
                      .prompt_tokens = count(record_.prompt_tokens),
                      .cached_tokens = count(record_.cached_tokens),
                      .output_tokens = count(record_.output_tokens),
                      .ttft_ms = {},
                      .deadline_ms = {}};
    if (record_.timeline.first_token) out.ttft_ms = base::to_ms(*record_.timeline.first_token);
    if (route_->idle) out.deadline_ms = base::to_ms(*route_->idle);
    return out;
}

}  // namespace fullstop::gateway
