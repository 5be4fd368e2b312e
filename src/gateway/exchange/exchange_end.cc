// How an exchange ends towards its client: the judgement is truth.cc's, the words and the bytes are
// made here.
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

std::optional<std::int64_t> reported(const answer::Fact<base::Tokens>& fact) {
    if (!fact) return std::nullopt;
    return (*fact).count;
}

std::int64_t Exchange::used_tokens() const {
    std::int64_t before = 0;
    for (const answer::Record& part : parts_) before += part.text_events;
    const std::int64_t estimate =
        record_.text_events + before > 0 ? prompt_tokens(work_, kFirstTokensPerByte) + before : 0;
    const auto bounded = [](std::int64_t tokens) {
        return std::clamp<std::int64_t>(tokens, 0, kMostTokens);
    };  // a server may report any number
    return bounded(reported(record_.prompt_tokens).value_or(estimate)) +
           bounded(reported(record_.output_tokens).value_or(record_.text_events));
}

void Exchange::stopped(Stop stop, std::string_view words, base::Instant at, std::string& out) {
    FULLSTOP_ASSERT(!over(), "an exchange that is over hears nothing more");
    now_ = at;
    finish(stop, describe(stop, words), out);
}

void Exchange::shut_down(base::Duration limit, base::Instant at, std::string& out) {
    cut_by_ = CutBy{.limit = "drain", .allowed = limit, .elapsed = limit};
    stopped(Stop::kShutdown,
            fmt::format("the gateway is shutting down and its drain limit of {:.0f} s is over",
                        base::to_seconds(limit)),
            at, out);
}

std::string Exchange::describe(Stop stop, std::string_view words) const {
    const std::string when = fmt::format("{} after the request", seconds(now_ - clocks_.arrived()));
    const std::string where = !begun_                        ? "before its head"
                              : framing_.missing_bytes() > 0 ? "inside the body"
                                                             : "before the end of the body";
    switch (stop) {
        case Stop::kFin:
            return fmt::format("the upstream closed its connection {}, {}", where, when);
        case Stop::kRst:
            return fmt::format("the upstream reset its connection {}, {} ({})", where, when,
                               words.substr(0, kMaxDetailBytes));
        case Stop::kIdle:
            return fmt::format("no byte {} for {} (limit {}), {}",
                               held_ ? "was taken by the client" : "from the upstream",
                               seconds(cut_by_->elapsed), seconds(cut_by_->allowed), when);
        case Stop::kDeadline:
            if (cut_by_->limit == "queue_wait")
                return fmt::format("it waited {} in the queue for an upstream (limit {})",
                                   seconds(cut_by_->elapsed), seconds(cut_by_->allowed));
            if (cut_by_->limit == "first_token")
                return fmt::format(
                    "no token from the upstream {} after it got the request (limit {}), {}",
                    seconds(cut_by_->elapsed), seconds(cut_by_->allowed), when);
            return fmt::format("the total limit of {} is over, {}", seconds(cut_by_->allowed),
                               when);
        default: return std::string(words);
    }
}

void Exchange::fault(std::string_view what, base::Instant at, std::string& out) {
    now_ = at;
    unread_ = {};
    const std::string words =
        fmt::format("a fault of this gateway: {}", what.substr(0, kMaxDetailBytes));
    if (between_parts()) return give_up(words, at, out);
    End end = end_before_head(Stop::kFault, words);
    const int status = status_before_head(end, Stop::kFault);
    if (!begun_) return fail_before_head(std::move(end), status, out);
    if (client_framing_ == ClientFraming::kChunked && is_stream(form_))
        out += wire::chunk(in_band(end, numbers(), shape_, form_, tail_));
    end.answer = work_.answer;
    end_ = std::move(end);
}

void Exchange::drop() {
    died_.reset();
    end_ =
        End{.answer = work_.answer, .cause = answer::Cause::kGatewayRejected, .by = By::kGateway};
}

void Exchange::not_connected(net::ConnectFailure why, std::string_view words, base::Instant at,
                             std::string& out) {
    now_ = at;
    if (may_try_elsewhere()) {
        wants_another_ = true;
        return;
    }
    if (between_parts())
        return give_up(fmt::format("there was no connection to {}", upstream_name_), at, out);
    End end =
        end_before_head(Stop::kFin, fmt::format("no connection to the upstream {}: {}",
                                                upstream_name_, words.substr(0, kMaxDetailBytes)));
    // Nobody listens where a server should: its process is gone. Everything else may lie on the
    // way.
    if (why == net::ConnectFailure::kRefused) end.cause = answer::Cause::kEngineDeath;
    fail_before_head(std::move(end), why == net::ConnectFailure::kTimedOut ? 504 : 502, out);
}

void Exchange::refuse(int status, std::string words, std::optional<base::Duration> retry_after,
                      base::Instant at, std::string& out) {
    now_ = at;
    if (between_parts()) return give_up(words, at, out);
    fail_before_head(end_before_head(Stop::kRefused, std::move(words)), status, out,
                     retry_after ? serving::retry_after(*retry_after)
                                 : wire::Headers{{"x-should-retry", "false"}});
}

std::optional<std::pair<Stop, std::string>> Exchange::unfit_head() const {
    const wire::ResponseHead& head = framing_.head();
    if (holds_control_bytes(raw_head_))
        return std::pair(Stop::kMalformed,
                         "the upstream's response head holds a NUL or a bare carriage return");
    if (work_.answer && head.status < 300 && is_encoded(head))
        return std::pair(Stop::kEncoded,
                         fmt::format("the upstream answered with content-encoding {} although it "
                                     "was asked for none: how such an answer ends "
                                     "cannot be read",
                                     content_encoding(head)));
    if (untrusted_length(head))
        return std::pair(Stop::kMalformed, "the upstream's content-length cannot be trusted");
    if (head.status == 101)
        return std::pair(Stop::kMalformed, "the upstream switched protocols unasked");
    return std::nullopt;
}

void Exchange::finish(Stop stop, std::string detail, std::string& out) {
    if (asks_template_)
        return give_up(
            fmt::format("{} was asked how it would go on, and {}", upstream_name_, detail), now_,
            out);
    if (reads_ && reader_) reader_->end({as_stream_end(stop)}, now_ - clocks_.arrived());
    if (between_parts())
        return give_up(detail.empty() ? fmt::format("{} answered with HTTP {}", upstream_name_,
                                                    framing_.head().status)
                                      : detail,
                       now_, out);
    if (leaves_the_rest(stop, detail)) return;
    if (!begun_) {
        End end = end_before_head(stop, std::move(detail));
        int status = status_before_head(end, stop);
        wire::Headers more;
        if (stop == Stop::kDeadline && clocks_.waiting()) {
            status = 503;
            more = serving::retry_after(std::min(cut_by_->allowed, kMaxRetryAfter));
        } else if (stop == Stop::kDeadline) {
            more.emplace_back(
                "x-should-retry",
                others_ ? "true" : "false");  // the same upstream would be as slow again
        }
        return fail_before_head(std::move(end), status, out, more);
    }
    end_ = judged(stop, std::move(detail));
    end_->cut_by = cut_by_;
    if (late_) return finish_late_error(*end_, out);
    if (held_end_) finish_held_end(*end_, out);
    if (client_framing_ != ClientFraming::kChunked) return;
    if (end_->say) out += wire::chunk(in_band(*end_, numbers(), shape_, form_, tail_));
    if (end_->whole) out += wire::last_chunk();
}

End Exchange::judged(Stop stop, std::string detail) const {
    const int status = framing_.head().status;
    return judge_end({.record = record_,
                      .dialect = reads_ ? reader_->dialect() : std::nullopt,
                      .answer_expected = work_.answer,
                      .success = status >= 200 && status < 300,
                      .close_delimited = framing_.framing() == answer::Framing::kUntilClose,
                      .form = late_ ? announced_form(framing_.head()) : form_,
                      .inside_event = inside_event(),
                      .own_end = work_.answer && shape_ != ErrorShape::kPlain,
                      .stop = stop,
                      .detail = std::move(detail),
                      .our_max_tokens = limit_ ? std::optional(limit_->max_tokens) : std::nullopt,
                      .ours_by_load = limit_ && limit_->by_load});
}

/// Of the upstream's body: what is held back of it counts.
bool Exchange::inside_event() const {
    if (continuation_ && continuation_->inside_event()) return true;
    if (form_ == BodyForm::kJson) return json_.open();
    const std::string_view held = held_end_ ? held_end_->held() : std::string_view();
    const bool open = gateway::inside_event(
        form_, tail_ + std::string(held.substr(held.size() - std::min(held.size(), kTailBytes))));
    // Where only the close ends it, a last line that is whole may lack its line feed.
    return open && !(form_ == BodyForm::kLines &&
                     framing_.framing() == answer::Framing::kUntilClose && !json_.open());
}

/// An end that was held back goes on as soon as it is true, and does not wait for the framing.
void Exchange::read_held_end(std::string& out) {
    read_copy(std::exchange(unread_, {}));
    if (reader_->own_end() == wire::OwnEnd::kTrue) pass_to_client(held_end_->take(true), out);
}

void Exchange::finish_held_end(End& end, std::string& out) {
    const bool goes_on = end.finished || end.whole;
    // An error that the upstream spoke of behind an end that was not true is not passed on with it.
    if (!goes_on && held_end_->ended() && reader_->own_end() != wire::OwnEnd::kBehindAnError)
        end.say = true;
    pass_to_client(held_end_->take(goes_on), out);
}

/// What the upstream refused with goes on in its own words when they are an error object; a whole
/// answer where a stream was asked for cannot be passed on any more.
void Exchange::finish_late_error(const End& end, std::string& out) {
    wire::JsonReader reader;
    const bool own_words = end.whole && reader.read(*late_)["error"];
    End told = end;
    if (end.whole && told.cause == answer::Cause::kUnexplained)
        told.cause = answer::Cause::kServerError;
    if (told.detail.empty())
        told.detail =
            fmt::format("the upstream answered with HTTP {} after heartbeats had been sent",
                        framing_.head().status);
    if (end.whole && framing_.head().status < 300) {
        told.cause = answer::Cause::kServerError;
        told.detail =
            "the upstream answered in one piece where a stream was asked for and heartbeats had "
            "been sent";
    }
    out += wire::chunk(own_words && framing_.head().status >= 300
                           ? wire::sse_event(*late_, shape_ == ErrorShape::kMessages ? "error" : "")
                           : error_event(told, numbers(), shape_));
    told.whole = false;  // no last chunk: an error is no orderly end
    end_ = std::move(told);
}

void Exchange::fail_before_head(End end, int status, std::string& out, const wire::Headers& more) {
    end.answer = end.answer && work_.answer;
    end.cut_by = cut_by_;
    if (committed_) {
        out += wire::chunk(error_event(end, numbers(), shape_));
        end_ = std::move(end);
        return;
    }
    wire::Headers headers = own_headers();
    headers.insert(headers.end(), more.begin(), more.end());
    if (!close_asked_) headers.emplace_back("Connection", "keep-alive");
    const std::string whole = wire::whole_response(status, "application/json",
                                                   error_body(end, numbers(), shape_), headers);
    out += head_only_ ? std::string_view(whole).substr(0, whole.find("\r\n\r\n") + 4)
                      : std::string_view(whole);
    end.whole = true;  // this response is the gateway's own, and complete
    end_ = std::move(end);
}

AnswerNumbers Exchange::numbers() const {
    AnswerNumbers out{.request_id = request_id_,
                      .requested_max_tokens = work_.max_tokens,
                      .effective_max_tokens = max_tokens(),
                      .prompt_tokens = reported(record_.prompt_tokens),
                      .cached_tokens = reported(record_.cached_tokens),
                      .output_tokens = reported(record_.output_tokens)};
    if (work_.answer) out.queue_ms = base::to_ms(queued(now_));
    const answer::Record& first = parts_.empty() ? record_ : parts_.front();
    if (first.timeline.first_token) out.ttft_ms = base::to_ms(*first.timeline.first_token);
    if (cut_by_)
        out.deadline_ms = base::to_ms(cut_by_->allowed);
    else if (total_)
        out.deadline_ms = base::to_ms(*total_);
    return out;
}

}  // namespace fullstop::gateway
