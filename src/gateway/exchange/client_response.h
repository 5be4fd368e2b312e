// What the client of one exchange has been given: a head, pieces of a body, and how they may end.
// Bytes for the client are appended; nothing here knows where they come from.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "gateway/ending/error_body.h"
#include "gateway/ending/held_end.h"
#include "gateway/ending/truth.h"
#include "gateway/exchange/response_head.h"
#include "net/event.h"
#include "net/service.h"
#include "wire/answer_reader.h"
#include "wire/http/request_text.h"

namespace fullstop::gateway {

/// As many bytes as the end of an event can have.
inline constexpr std::size_t kTailBytes = 4;

class ClientResponse {
public:
    enum class State {
        kNothing,   ///< a status can still be told
        kWaiting,   ///< behind a head: comments while a response, or the rest of one, is waited for
        kRelaying,  ///< a response goes on as it comes
        kWithheld,  ///< behind comments came a response that is no stream: it waits for its end
    };
    ClientResponse(const net::ServiceRequest& request, ErrorShape shape, base::Instant now);

    State state() const { return state_; }
    /// A response of an upstream has begun: no other one can be taken.
    bool begun() const { return state_ == State::kRelaying || state_ == State::kWithheld; }
    bool has_head() const { return state_ != State::kNothing; }
    bool head_only() const { return head_only_; }
    bool is_chunked() const { return framing_ == ClientFraming::kChunked; }
    BodyForm form() const { return form_; }
    ErrorShape shape() const { return shape_; }
    std::size_t relayed() const { return relayed_; }  ///< bytes of the body
    base::Instant last_sent() const { return last_sent_; }
    const std::string& withheld() const { return withheld_; }

    // kNothing -> kRelaying: the upstream's head, with `ours`. `holds`: how its true end is known.
    void relay_head(std::string_view raw, const wire::ResponseHead& head, answer::Framing upstream,
                    wire::Headers ours, base::Instant now, std::string& out);
    // kNothing -> kWaiting: a head of our own for a stream.
    void give_own_head(wire::Headers ours, std::string& out);
    // kWaiting -> kRelaying, or kWithheld when what comes is no stream.
    void begin_behind_comments(bool stream);
    // kRelaying -> kWaiting: the rest is to come from elsewhere. Gives the tail of what went out.
    std::string interrupt();
    // kWaiting or kWithheld -> kRelaying: as it stood when it was interrupted.
    void restore(std::string tail);

    void hold_back(HeldEnd::By by) { held_end_.emplace(by); }
    void comment(std::string_view text, base::Instant now, std::string& out);
    /// An event of our own, which is no part of the answer.
    void event(std::string_view bytes, base::Instant now, std::string& out);
    /// A piece of the upstream's body.
    void pass(std::string_view body, base::Instant now, std::string& out);

    /// An end has come that is held back until it is known to be true.
    bool holds_end() const { return held_end_ && held_end_->ended(); }
    std::size_t held_bytes() const { return held_end_ ? held_end_->held().size() : 0; }
    void let_end_go(base::Instant now, std::string& out);
    /// The body stops inside an event, a line or a JSON text. `json_open`: as the upstream's body
    /// says; `close_delimited`: only its close ended it.
    bool inside_event(bool json_open, bool close_delimited) const;

    /// The end of a relayed body: what was held back, the error if there is one to say, the last
    /// chunk if the answer is whole.
    void end(End& end, const AnswerNumbers& numbers, wire::OwnEnd own_end, base::Instant now,
             std::string& out);
    /// Our error inside a stream, where one can stand.
    void say_error(const End& end, const AnswerNumbers& numbers, std::string& out) const;
    /// Our error in a stream that only comments have been sent on.
    void say_error_alone(const End& end, const AnswerNumbers& numbers, std::string& out) const;
    /// A whole response of our own, while nothing has been said.
    void respond(int status, std::string_view body, wire::Headers headers, std::string& out) const;

    /// After the end: the connection may carry a next request.
    bool keep_alive(bool whole) const {
        return keep_alive_ && whole && framing_ != ClientFraming::kUntilClose;
    }
    /// Where only the close ends the body, an orderly close would say "whole".
    net::CloseKind close_kind(bool whole) const {
        return framing_ == ClientFraming::kUntilClose && !whole ? net::CloseKind::kRst
                                                                : net::CloseKind::kFin;
    }

private:
    void give(std::string_view body, base::Instant now, std::string& out);

    State state_ = State::kNothing;
    bool head_only_, keep_alive_;
    ErrorShape shape_;
    ClientFraming framing_ = ClientFraming::kNone;
    BodyForm form_ = BodyForm::kOther;
    std::optional<HeldEnd> held_end_;  ///< of a stream
    std::string tail_, withheld_;
    std::size_t relayed_ = 0;
    base::Instant last_sent_;
};

}  // namespace fullstop::gateway
