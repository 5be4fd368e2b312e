// An answer in parts: its server died, and another one is to write the rest. The end of the dead
// part is judged at once and kept, because if nobody goes on, it is the end. Between two parts the
// client may hear comments; the seam is declared before the first byte of the next part.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "gateway/exchange/exchange.h"
#include "gateway/limits.h"
#include "gateway/request/request_head.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {

/// True: this part is over, and another server is wanted for the rest.
bool Exchange::leaves_the_rest(Stop stop, const std::string& detail) {
    const bool died = stop == Stop::kFin || stop == Stop::kRst || stop == Stop::kMalformed ||
                      stop == Stop::kFramed;
    if (!continuation_ || !begun_ || late_ || !died || client_framing_ != ClientFraming::kChunked ||
        !others_ || tried_.size() >= kMaxAttempts)
        return false;
    if (!continuation_->failure().empty() || continuation_->obstacle()) return false;
    End end = judged(stop, detail);
    if (end.whole) return false;
    if (!queued_before_) queued_before_ = clocks_.queued(now_);
    died_ = Died{.end = std::move(end), .upstream = upstream_name_, .chunk_tail = tail_};
    parts_.push_back(std::exchange(record_, {}));
    begun_ = false;
    committed_ = wants_another_ = true;
    return true;
}

bool Exchange::may_write_the_rest(const Upstream& upstream) const {
    const auto& models = upstream.capacity().models;
    return upstream.capacity().continues &&
           std::ranges::find(models, parts_.back().response_model) != models.end();
}

std::string Exchange::template_request() const {
    net::ServiceRequest ask = request_;
    ask.target = "/apply-template";
    ask.body = continuation_->template_question();
    return upstream_request(ask, url_, request_id_);
}

void Exchange::read_template(std::string_view bytes, std::string& out) {
    while (!bytes.empty() && !framing_.complete()) {
        template_reply_ += framing_.next(bytes);
        if (framing_.overflowed() || framing_.malformed() ||
            template_reply_.size() > kMaxTemplateReplyBytes)
            return give_up(fmt::format("{} answered no HTTP when it was asked how it would go on",
                                       upstream_name_),
                           now_, out);
    }
    if (!framing_.complete()) return;
    if (framing_.head().status != 200 || !continuation_->template_holds(template_reply_))
        return give_up(fmt::format("the chat template of {} does not end with what was delivered",
                                   upstream_name_),
                       now_, out);
    if (!stays_open(framing_.head()))
        return give_up(fmt::format("{} closes its connection behind each answer", upstream_name_),
                       now_, out);
    asks_template_ = false;
    template_reply_.clear();
    framing_ = {};
    net::ServiceRequest next = request_;
    next.body = continuation_->request_body();
    further_ = upstream_request(next, url_, request_id_);
}

/// The next server has answered: what the client hears of it is where the seam is, and then the
/// rest.
void Exchange::declare_seam(std::string& out) {
    raw_head_ = {};
    const int status = framing_.head().status;
    if (status < 200 || status >= 300 || announced_form(framing_.head()) != BodyForm::kSse) {
        late_.emplace();  // its own words are of no use here; finish() gives up
        return;
    }
    const Died died = *std::exchange(died_, std::nullopt);
    const boost::json::object seam = {
        {"from", died.upstream},
        {"to", upstream_name_},
        {"because", answer::to_string(died.end.cause)},
        {"detail", died.end.detail},
        {"at_bytes", continuation_->delivered_bytes()},
        {"at_tokens", continuation_->delivered_tokens()},
        {"verified", "the chat template ends with the delivered text"},
        {"usage",
         "prompt_tokens holds what was delivered before, completion_tokens only the rest"}};
    const boost::json::object event = {
        {"id", request_id_},
        {"object", "chat.completion.chunk"},
        {"model", parts_.back().response_model},
        {"choices", boost::json::array()},
        {"fullstop", {{"request_id", request_id_}, {"continued", seam}}}};
    out += wire::chunk(wire::sse_event(boost::json::serialize(event)));
    continuation_->begin_next();
    sent_ = now_;
}

void Exchange::give_up(std::string_view why, base::Instant at, std::string& out) {
    now_ = at;
    asks_template_ = false;
    begun_ = true;
    late_.reset();
    Died died = *std::exchange(died_, std::nullopt);
    record_ = std::move(parts_.back());
    parts_.pop_back();
    upstream_name_ = died.upstream;
    tail_ = std::move(died.chunk_tail);
    died.end.detail += fmt::format("; the rest could not be had elsewhere: {}", why);
    end_ = std::move(died.end);
    if (end_->say) out += wire::chunk(in_band(*end_, numbers(), shape_, form_, tail_));
}

}  // namespace fullstop::gateway
