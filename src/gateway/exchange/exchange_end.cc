// How an exchange ends for its client: truth.cc judges, the messages and bytes are made here.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "gateway/exchange/exchange.h"
#include "gateway/limits.h"
#include "wire/http/response_text.h"
#include "wire/json/json.h"

namespace fullstop::gateway {
namespace {

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

}  // namespace

void Exchange::want_another() {
    FULLSTOP_ASSERT(state_ == State::kOpen, "only an open exchange asks for another attempt");
    state_ = State::kWantsAnother;
}

void Exchange::over_with(End end) {
    end_ = std::move(end);
    state_ = State::kOver;
}

void Exchange::stopped(Stop stop, std::string_view detail, base::Instant at, std::string& out) {
    FULLSTOP_ASSERT(!over(), "an exchange that is over hears nothing more");
    now_ = at;
    finish(stop, describe(stop, detail), out);
}

void Exchange::shut_down(base::Duration limit, base::Instant at, std::string& out) {
    cut_by_ = CutBy{.limit = "drain", .allowed = limit, .elapsed = limit};
    stopped(Stop::kShutdown,
            fmt::format("the gateway is shutting down and its drain limit of {:.0f} s is over",
                        base::to_seconds(limit)),
            at, out);
}

std::string Exchange::describe(Stop stop, std::string_view detail) const {
    const std::string when = fmt::format("{} after the request", seconds(since_arrival()));
    const std::string where = !begun() ? "before its head"
                              : attempt_->framing().missing_bytes() > 0
                                  ? "inside the body"
                                  : "before the end of the body";
    switch (stop) {
        case Stop::kFin:
            return fmt::format("the upstream closed its connection {}, {}", where, when);
        case Stop::kRst:
            return fmt::format("the upstream reset its connection {}, {} ({})", where, when,
                               detail.substr(0, kMaxDetailBytes));
        case Stop::kIdle:
            return fmt::format("no byte {} for {} (limit {}), {}",
                               lags_ ? "was taken by the client" : "from the upstream",
                               seconds(cut_by_->elapsed), seconds(cut_by_->allowed), when);
        case Stop::kDeadline:
            if (cut_by_->limit == "queue_wait")
                return fmt::format("the request waited {} in the queue for an upstream (limit {})",
                                   seconds(cut_by_->elapsed), seconds(cut_by_->allowed));
            if (cut_by_->limit == "first_token")
                return fmt::format(
                    "no token from the upstream {} after it got the request (limit {}), {}",
                    seconds(cut_by_->elapsed), seconds(cut_by_->allowed), when);
            return fmt::format("the total limit of {} is over, {}", seconds(cut_by_->allowed),
                               when);
        default: return std::string(detail);
    }
}

void Exchange::fault(std::string_view what, base::Instant at, std::string& out) {
    now_ = at;
    unread_ = {};
    const std::string detail =
        fmt::format("a fault of this gateway: {}", what.substr(0, kMaxDetailBytes));
    if (between_parts()) return give_up(detail, at, out);
    End end = end_before_head(Stop::kFault, detail);
    const int status = status_before_head(end, Stop::kFault);
    if (!begun()) return fail_before_head(std::move(end), status, out);
    client_.say_error(end, numbers(), out);
    end.answer = work_.answer;
    over_with(std::move(end));
}

void Exchange::drop() {
    parts_.died.reset();
    over_with(
        {.answer = work_.answer, .cause = answer::Cause::kGatewayRejected, .by = By::kGateway});
}

void Exchange::not_connected(net::ConnectFailure why, std::string_view detail, base::Instant at,
                             std::string& out) {
    now_ = at;
    if (may_try_elsewhere()) {
        want_another();
        return;
    }
    if (between_parts())
        return give_up(fmt::format("there was no connection to {}", upstream_name()), at, out);
    End end = end_before_head(Stop::kFin,
                              fmt::format("no connection to the upstream {}: {}", upstream_name(),
                                          detail.substr(0, kMaxDetailBytes)));
    // Nobody listens where a server should: its process is gone. Everything else may lie on the
    // way.
    if (why == net::ConnectFailure::kRefused) end.cause = answer::Cause::kEngineDeath;
    fail_before_head(std::move(end), why == net::ConnectFailure::kTimedOut ? 504 : 502, out);
}

void Exchange::refuse(int status, std::string message, std::optional<base::Duration> retry_after,
                      base::Instant at, std::string& out) {
    now_ = at;
    if (between_parts()) return give_up(message, at, out);
    fail_before_head(end_before_head(Stop::kRefused, std::move(message)), status, out,
                     retry_after ? serving::retry_after(*retry_after)
                                 : wire::Headers{{"x-should-retry", "false"}});
}

void Exchange::finish(Stop stop, std::string detail, std::string& out) {
    if (attempt_->asks() == Attempt::Asks::kTemplate)
        return give_up(
            fmt::format("{} was asked for its chat template, and {}", upstream_name(), detail),
            now_, out);
    if (reads_) attempt_->read_end(as_stream_end(stop), since_arrival());
    if (between_parts())
        return give_up(detail.empty() ? fmt::format("{} answered with HTTP {}", upstream_name(),
                                                    attempt_->status())
                                      : detail,
                       now_, out);
    if (leaves_the_rest(stop, detail)) return;
    if (!begun()) return fail_without_response(stop, std::move(detail), out);
    over_with(judged(stop, std::move(detail)));
    end_->cut_by = cut_by_;
    if (client_.state() == ClientResponse::State::kWithheld) return finish_withheld(out);
    client_.end(*end_, numbers(), attempt_->own_end(), now_, out);
}

void Exchange::fail_without_response(Stop stop, std::string detail, std::string& out) {
    End end = end_before_head(stop, std::move(detail));
    int status = status_before_head(end, stop);
    wire::Headers more;
    if (stop == Stop::kDeadline && clocks_.waiting()) {
        status = 503;
        more = serving::retry_after(std::min(cut_by_->allowed, kMaxRetryAfter));
    } else if (stop == Stop::kDeadline) {
        // The same upstream would be as slow again.
        more.emplace_back("x-should-retry", attempt_->others() ? "true" : "false");
    }
    fail_before_head(std::move(end), status, out, more);
}

End Exchange::judged(Stop stop, std::string detail) const {
    const int status = attempt_->status();
    const bool withheld = client_.state() == ClientResponse::State::kWithheld;
    const bool inside_event =
        (parts_.continuation && parts_.continuation->inside_event()) ||
        client_.inside_event(attempt_->json_open(), attempt_->close_delimited());
    return judge_end({.record = record(),
                      .dialect = reads_ ? attempt_->dialect() : std::nullopt,
                      .answer_expected = work_.answer,
                      .success = status >= 200 && status < 300,
                      .close_delimited = attempt_->close_delimited(),
                      .form = withheld ? announced_form(attempt_->head()) : client_.form(),
                      .inside_event = inside_event,
                      .own_end = work_.answer && client_.shape() != ErrorShape::kPlain,
                      .stop = stop,
                      .detail = std::move(detail),
                      .our_max_tokens = limit_ ? std::optional(limit_->max_tokens) : std::nullopt,
                      .ours_by_load = limit_ && limit_->by_load});
}

/// What the upstream refused with is passed on as it stands when it is an error object; a whole
/// answer where a stream was asked for cannot be passed on any more.
void Exchange::finish_withheld(std::string& out) {
    wire::JsonReader reader;
    const int status = attempt_->status();
    const std::string& withheld = client_.withheld();
    const bool own_error = end_->whole && reader.read(withheld)["error"];
    if (end_->whole && end_->cause == answer::Cause::kUnexplained)
        end_->cause = answer::Cause::kServerError;
    if (end_->detail.empty())
        end_->detail = fmt::format(
            "the upstream answered with HTTP {} after heartbeats had been sent", status);
    if (end_->whole && status < 300) {
        end_->cause = answer::Cause::kServerError;
        end_->detail =
            "the upstream answered in one piece, although a stream was asked for and heartbeats "
            "had been sent";
    }
    if (own_error && status >= 300)
        client_.event(
            wire::sse_event(withheld, client_.shape() == ErrorShape::kMessages ? "error" : ""),
            now_, out);
    else
        client_.say_error_alone(*end_, numbers(), out);
    end_->whole = false;  // no last chunk: an error is no orderly end
}

void Exchange::fail_before_head(End end, int status, std::string& out, const wire::Headers& more) {
    end.answer = end.answer && work_.answer;
    end.cut_by = cut_by_;
    if (client_.has_head()) {
        client_.say_error_alone(end, numbers(), out);
        return over_with(std::move(end));
    }
    wire::Headers headers = own_headers();
    headers.insert(headers.end(), more.begin(), more.end());
    client_.respond(status, error_body(end, numbers(), client_.shape()), std::move(headers), out);
    end.whole = true;  // this response is the gateway's own, and complete
    over_with(std::move(end));
}

}  // namespace fullstop::gateway
