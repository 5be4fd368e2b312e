// An exchange in numbers: its tokens, what its client is told of it, and the record of the answer
// as it was seen between upstream and client. Text and gaps are not in it: the gateway keeps
// neither.
#include <algorithm>

#include "gateway/exchange/exchange.h"
#include "gateway/limits.h"

namespace fullstop::gateway {
namespace {

/// The reader counts from the arrival of the request, a record from the start of the run.
void move_origin(answer::Timeline& times, base::Duration arrived) {
    for (auto* moment :
         {&times.headers, &times.first_byte, &times.first_comment, &times.first_token,
          &times.first_answer, &times.last_token, &times.finish, &times.terminator, &times.ended})
        if (*moment) **moment += arrived;
}

/// What the client saw of an answer in parts began with the first. What the last server counts as
/// its own is the rest alone.
void begin_with(answer::Record& out, const std::vector<answer::Record>& parts, std::size_t seams) {
    if (parts.empty()) return;
    std::int64_t before = 0;
    const answer::Timeline& first = parts.front().timeline;
    out.timeline.headers = first.headers, out.timeline.first_byte = first.first_byte,
    out.timeline.first_comment = first.first_comment;
    out.timeline.first_token = first.first_token, out.timeline.first_answer = first.first_answer;
    for (const answer::Record& part : parts) before += part.text_events;
    out.text_events += before;
    if (const auto rest = reported(out.output_tokens))
        out.output_tokens = answer::Fact<base::Tokens>::derived(
            {*rest + before}, "what the last server reports, and events with text before it");
    if (seams > 0) out.stop_details["fullstop.continued"] = std::to_string(seams);
}

}  // namespace

std::optional<std::int64_t> reported(const answer::Fact<base::Tokens>& fact) {
    if (!fact) return std::nullopt;
    return (*fact).count;
}

std::int64_t Exchange::used_tokens() const {
    std::int64_t before = 0;
    for (const answer::Record& part : parts_.ended) before += part.text_events;
    const answer::Record& last = record();
    const std::int64_t estimate =
        last.text_events + before > 0 ? prompt_tokens(work_, kFirstTokensPerByte) + before : 0;
    const auto bounded = [](std::int64_t tokens) {
        return std::clamp<std::int64_t>(tokens, 0, kMostTokens);
    };  // a server may report any number
    return bounded(reported(last.prompt_tokens).value_or(estimate)) +
           bounded(reported(last.output_tokens).value_or(last.text_events));
}

AnswerNumbers Exchange::numbers() const {
    AnswerNumbers out{.request_id = request_id_,
                      .requested_max_tokens = work_.max_tokens,
                      .effective_max_tokens = max_tokens(),
                      .prompt_tokens = reported(record().prompt_tokens),
                      .cached_tokens = reported(record().cached_tokens),
                      .output_tokens = reported(record().output_tokens)};
    if (work_.answer) out.queue_ms = base::to_ms(queued(now_));
    const answer::Record& first = parts_.ended.empty() ? record() : parts_.ended.front();
    if (first.timeline.first_token) out.ttft_ms = base::to_ms(*first.timeline.first_token);
    if (cut_by_)
        out.deadline_ms = base::to_ms(cut_by_->allowed);
    else if (total_)
        out.deadline_ms = base::to_ms(*total_);
    return out;
}

answer::Record Exchange::as_record(base::Instant origin, base::Instant now,
                                   const std::optional<End>& end) const {
    answer::Record out = record();
    out.request.id = request_id_;
    out.request.arm = "gateway";
    out.request.model = work_.model;
    out.request.stream = work_.stream;
    if (const auto dialect = attempt_->dialect()) out.request.api = *dialect;
    if (const auto limit = max_tokens()) out.request.max_tokens = base::Tokens{*limit};
    if (work_.max_tokens)
        out.requested_max_tokens =
            answer::Fact<base::Tokens>::measured({*work_.max_tokens}, "the limit in the request");
    if (limit_)
        out.effective_max_tokens =
            answer::Fact<base::Tokens>::measured({limit_->max_tokens}, limit_->name);
    begin_with(out, parts_.ended, seams());
    const base::Duration arrived = clocks_.arrived() - origin;
    move_origin(out.timeline, arrived);
    out.timeline.started = arrived;
    if (!clocks_.waiting()) out.timeline.sent = arrived + queued(now);
    out.timeline.ended = now - origin;
    out.queue_ms =
        answer::Fact<double>::measured(base::to_ms(queued(now)), "in the gateway's queue");
    if (total_)
        out.gateway_deadline_ms =
            answer::Fact<double>::measured(base::to_ms(*total_), "the total limit");
    if (cut_by_ && cut_by_->limit != "drain") out.deadline_fired = answer::DeadlineFired::kGateway;
    if (!end) {
        out.fullstop_cause = answer::to_string(answer::Cause::kClientCancelled);
        out.end.transport = answer::Transport::kClosedByUs;
        return out;
    }
    out.stop_details["fullstop.stop.by"] = to_string(end->by);
    if (!end->detail.empty()) out.stop_details["fullstop.stop.detail"] = end->detail;
    out.fullstop_cause = answer::to_string(end->cause);
    if (!upstream_name().empty()) out.headers["fullstop-upstream"] = upstream_name();
    return out;
}

}  // namespace fullstop::gateway
