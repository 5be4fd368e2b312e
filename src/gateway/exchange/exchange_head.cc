// How a response begins towards the client: with the upstream's head and the gateway's own lines in
// it, or behind comments that have been sent already.
#include <fmt/format.h>

#include "gateway/exchange/exchange.h"
#include "gateway/limits.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {

/// False: the response ends here, or another attempt is wanted.
bool Exchange::take_head(std::string& out) {
    if (auto unfit = attempt_->unfit(work_.answer)) {
        finish(unfit->first, std::move(unfit->second), out);
        return false;
    }
    if (attempt_->status() == 503 && may_try_elsewhere()) {
        want_another();
        return false;
    }
    begin_response(out);
    return true;
}

void Exchange::begin_response(std::string& out) {
    request_.body = {};  // no further attempt
    large_body_.reset();
    kept_.resize(continuation_bytes_, now_);
    if (between_parts()) return declare_seam(out);
    if (client_.has_head()) return begin_behind_heartbeats(out);
    client_.relay_head(attempt_->raw_head(), attempt_->head(), attempt_->framing().framing(),
                       own_headers(), now_, out);
    attempt_->forget_raw_head();
    if (const int status = attempt_->status(); reads_ && status >= 200 && status < 300)
        hold_end_back();
}

/// The client has a head already: what this one says goes into a comment, and a body that is no
/// stream waits for its end.
void Exchange::begin_behind_heartbeats(std::string& out) {
    const int status = attempt_->status();
    out += wire::chunk(
        wire::sse_comment(fmt::format("fullstop upstream={} status={} queue_ms={:.0f}",
                                      upstream_name(), status, base::to_ms(queued(now_)))));
    const bool stream =
        status >= 200 && status < 300 && announced_form(attempt_->head()) == BodyForm::kSse;
    client_.begin_behind_comments(stream);
    if (stream) hold_end_back();
    attempt_->forget_raw_head();
}

/// Which ends a stream may have that are held back, if any.
void Exchange::hold_end_back() {
    if (client_.form() == BodyForm::kLines && work_.answer) client_.hold_back(HeldEnd::By::kLine);
    if (client_.form() == BodyForm::kSse)
        client_.hold_back(work_.answer && client_.shape() != ErrorShape::kPlain
                              ? HeldEnd::By::kEventType
                              : HeldEnd::By::kDone);
}

wire::Headers Exchange::own_headers() const {
    wire::Headers out = {{"X-Request-Id", request_id_}};
    if (!upstream_name().empty()) out.emplace_back("Fullstop-Upstream", upstream_name());
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
    const auto asked = reported(record().requested_max_tokens);
    if (!asked) return out;
    out.emplace_back("Fullstop-Requested-Max-Tokens", std::to_string(*asked));
    // An upstream that announces a limit of its own knows better.
    if (!attempt_->head().headers.contains("fullstop-effective-max-tokens"))
        out.emplace_back("Fullstop-Effective-Max-Tokens", std::to_string(*asked));
    return out;
}

}  // namespace fullstop::gateway
