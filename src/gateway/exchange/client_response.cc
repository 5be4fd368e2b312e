// One state, changed by the functions that say so; the bytes of each state are made here.
#include "gateway/exchange/client_response.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "gateway/limits.h"
#include "gateway/request/request_head.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {

ClientResponse::ClientResponse(const net::ServiceRequest& request, ErrorShape shape,
                               base::Instant now)
    : head_only_(request.method == "HEAD"),
      keep_alive_(!wants_close(request)),
      shape_(shape),
      last_sent_(now) {}

// Heads and states
// -------------------------------------------------------------------------------------------------

void ClientResponse::relay_head(std::string_view raw, const wire::ResponseHead& head,
                                answer::Framing upstream, wire::Headers ours, base::Instant now,
                                std::string& out) {
    FULLSTOP_ASSERT(state_ == State::kNothing, "a response has one head");
    form_ = announced_form(head);
    framing_ = client_framing(head, upstream, head_only_);
    if (!keep_alive_ && framing_ != ClientFraming::kUntilClose)
        ours.emplace_back("Connection", "close");
    out += client_head(raw, head, framing_, ours);
    last_sent_ = now;
    // Not before the head is out: a fault until then may still be told by a status.
    state_ = State::kRelaying;
}

void ClientResponse::give_own_head(wire::Headers ours, std::string& out) {
    FULLSTOP_ASSERT(state_ == State::kNothing, "a response has one head");
    form_ = BodyForm::kSse;
    framing_ = ClientFraming::kChunked;
    if (!keep_alive_) ours.emplace_back("Connection", "close");
    out += wire::stream_head("text/event-stream", ours);
    state_ = State::kWaiting;
}

void ClientResponse::begin_behind_comments(bool stream) {
    FULLSTOP_ASSERT(state_ == State::kWaiting, "a response begins once");
    state_ = stream ? State::kRelaying : State::kWithheld;
}

std::string ClientResponse::interrupt() {
    FULLSTOP_ASSERT(state_ == State::kRelaying, "what is interrupted had begun");
    state_ = State::kWaiting;
    return tail_;
}

void ClientResponse::restore(std::string tail) {
    FULLSTOP_ASSERT(has_head(), "what is restored had begun");
    state_ = State::kRelaying;
    withheld_.clear();
    tail_ = std::move(tail);
}

// Bodies
// -------------------------------------------------------------------------------------------------

void ClientResponse::comment(std::string_view text, base::Instant now, std::string& out) {
    event(wire::sse_comment(text), now, out);
}

void ClientResponse::event(std::string_view bytes, base::Instant now, std::string& out) {
    out += wire::chunk(bytes);
    last_sent_ = now;
}

void ClientResponse::pass(std::string_view body, base::Instant now, std::string& out) {
    if (state_ == State::kWithheld)
        withheld_.append(
            body.substr(0, kMaxLateErrorBytes - std::min(kMaxLateErrorBytes, withheld_.size())));
    else if (held_end_)
        give(held_end_->pass(body), now, out);
    else
        give(body, now, out);
}

void ClientResponse::give(std::string_view body, base::Instant now, std::string& out) {
    if (body.empty()) return;
    relayed_ += body.size();
    last_sent_ = now;
    tail_.append(body.substr(body.size() - std::min(body.size(), kTailBytes)));
    if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
    if (is_chunked())
        out += wire::chunk(body);
    else
        out += body;
}

void ClientResponse::let_end_go(base::Instant now, std::string& out) {
    give(held_end_->take(true), now, out);
}

bool ClientResponse::inside_event(bool json_open, bool close_delimited) const {
    if (form_ == BodyForm::kJson) return json_open;
    // What is held back counts: the question is about the upstream's body.
    const std::string_view held = held_end_ ? held_end_->held() : std::string_view();
    const bool open = gateway::inside_event(
        form_, tail_ + std::string(held.substr(held.size() - std::min(held.size(), kTailBytes))));
    // Where only the close ends it, a last line that is whole may lack its line feed.
    return open && !(form_ == BodyForm::kLines && close_delimited && !json_open);
}

// Ends
// -------------------------------------------------------------------------------------------------

void ClientResponse::end(End& end, const AnswerNumbers& numbers, wire::OwnEnd own_end,
                         base::Instant now, std::string& out) {
    if (held_end_) {
        const bool goes_on = end.finished || end.whole;
        // An error that the upstream spoke of behind an end that was not true is not passed on with
        // it.
        if (!goes_on && held_end_->ended() && own_end != wire::OwnEnd::kBehindAnError)
            end.say = true;
        give(held_end_->take(goes_on), now, out);
    }
    if (!is_chunked()) return;
    if (end.say) out += wire::chunk(in_band(end, numbers, shape_, form_, tail_));
    if (end.whole) out += wire::last_chunk();
}

void ClientResponse::say_error(const End& end, const AnswerNumbers& numbers,
                               std::string& out) const {
    if (is_chunked() && is_stream(form_))
        out += wire::chunk(in_band(end, numbers, shape_, form_, tail_));
}

void ClientResponse::say_error_alone(const End& end, const AnswerNumbers& numbers,
                                     std::string& out) const {
    out += wire::chunk(error_event(end, numbers, shape_));
}

void ClientResponse::respond(int status, std::string_view body, wire::Headers headers,
                             std::string& out) const {
    if (keep_alive_) headers.emplace_back("Connection", "keep-alive");
    const std::string whole = wire::whole_response(status, serving::kJson, body, headers);
    out += head_only_ ? std::string_view(whole).substr(0, whole.size() - body.size())
                      : std::string_view(whole);
}

}  // namespace fullstop::gateway
