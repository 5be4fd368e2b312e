// An answer in parts: its server died, and another one is asked for the rest. The end of the dead
// part is judged at once and kept: if no server continues the answer, it is the end. Between two
// parts the client may get comments; the seam is declared before the first byte of the next part.
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
    if (!parts_.continuation || client_.state() != ClientResponse::State::kRelaying || !died ||
        !client_.is_chunked() || !attempt_->others() || tried_.size() >= kMaxAttempts)
        return false;
    if (!parts_.continuation->failure().empty() || parts_.continuation->obstacle()) return false;
    End end = judged(stop, detail);
    if (end.whole) return false;
    if (!parts_.queued) parts_.queued = clocks_.queued(now_);
    parts_.died = Parts::Died{
        .end = std::move(end), .upstream = upstream_name(), .tail = client_.interrupt()};
    parts_.ended.push_back(attempt_->take_record());
    want_another();
    return true;
}

bool Exchange::may_write_the_rest(const Upstream& upstream) const {
    const auto& models = upstream.capacity().models;
    return upstream.capacity().continues &&
           std::ranges::find(models, parts_.ended.back().response_model) != models.end();
}

std::string Exchange::template_request() const {
    net::ServiceRequest ask = request_;
    ask.target = "/apply-template";
    ask.body = parts_.continuation->template_question();
    return upstream_request(ask, attempt_->url(), request_id_);
}

void Exchange::read_template(std::string_view bytes, std::string& out) {
    const wire::HttpFraming& framing = attempt_->framing();
    std::string& reply = parts_.template_reply;
    while (!bytes.empty() && !framing.complete()) {
        reply += attempt_->next(bytes, false);
        if (framing.overflowed() || framing.malformed() || reply.size() > kMaxTemplateReplyBytes)
            return give_up(fmt::format("{} did not answer in HTTP when asked for its chat template",
                                       upstream_name()),
                           now_, out);
    }
    if (!framing.complete()) return;
    if (attempt_->status() != 200 || !parts_.continuation->template_holds(reply))
        return give_up(fmt::format("the chat template of {} does not end with the delivered text",
                                   upstream_name()),
                       now_, out);
    if (!stays_open(attempt_->head()))
        return give_up(fmt::format("{} closes its connection after each answer", upstream_name()),
                       now_, out);
    attempt_->ask_for_the_rest();
    reply.clear();
    net::ServiceRequest next = request_;
    next.body = parts_.continuation->request_body();
    parts_.next_request = upstream_request(next, attempt_->url(), request_id_);
}

/// The next server has answered: what the client hears of it is where the seam is, and then the
/// rest.
void Exchange::declare_seam(std::string& out) {
    attempt_->forget_raw_head();
    const int status = attempt_->status();
    const bool stream =
        status >= 200 && status < 300 && announced_form(attempt_->head()) == BodyForm::kSse;
    client_.begin_behind_comments(stream);
    if (!stream) return;  // finish() gives up
    const Parts::Died died = *std::exchange(parts_.died, std::nullopt);
    const boost::json::object seam = {
        {"from", died.upstream},
        {"to", upstream_name()},
        {"because", answer::to_string(died.end.cause)},
        {"detail", died.end.detail},
        {"at_bytes", parts_.continuation->delivered_bytes()},
        {"at_tokens", parts_.continuation->delivered_tokens()},
        {"verified", "the chat template ends with the delivered text"},
        {"usage",
         "prompt_tokens includes the text delivered before, completion_tokens counts only the "
         "rest"}};
    const boost::json::object event = {
        {"id", request_id_},
        {"object", "chat.completion.chunk"},
        {"model", parts_.ended.back().response_model},
        {"choices", boost::json::array()},
        {"fullstop", {{"request_id", request_id_}, {"continued", seam}}}};
    client_.event(wire::sse_event(boost::json::serialize(event)), now_, out);
    parts_.continuation->begin_next();
}

void Exchange::give_up(std::string_view why, base::Instant at, std::string& out) {
    now_ = at;
    Parts::Died died = *std::exchange(parts_.died, std::nullopt);
    client_.restore(std::move(died.tail));
    attempt_->stand_for(died.upstream, std::move(parts_.ended.back()));
    parts_.ended.pop_back();
    died.end.detail += fmt::format("; no other server continued it: {}", why);
    if (died.end.say) client_.say_error(died.end, numbers(), out);
    over_with(std::move(died.end));
}

}  // namespace fullstop::gateway
