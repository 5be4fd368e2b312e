// A chat answer that another server continues when its own server dies (opt in). The request is
// sent again with the delivered text as the beginning of the model's turn.
//
// Only plain text is continued, and only by a server whose chat template was seen to end its prompt
// with exactly the delivered text. What that server repeats of it is taken out, and the seam is
// declared in the stream. The rest is a new draw of the model: same distribution, other text. An
// answer that holds more (tool calls, reasoning, several choices) is not continued and ends with
// its error.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "gateway/request/work.h"
#include "wire/json/json.h"

namespace fullstop::gateway {

class Continuation {
public:
    /// Null: an answer to this request could not be continued faithfully. `body` and `max_tokens`
    /// as the server gets them.
    static std::unique_ptr<Continuation> of(const Work& work, const std::string& body,
                                            std::optional<std::int64_t> max_tokens);

    /// Bytes of a stream's body in, what goes on to the client out: whole events, without what was
    /// delivered before.
    std::string pass(std::string_view body);
    bool inside_event() const { return !held_.empty(); }
    /// Why the rest cannot come from elsewhere; absent: it can.
    std::optional<std::string> obstacle() const;
    bool finished() const { return finished_; }

    // The next attempt
    std::string template_question() const;  ///< body for POST /apply-template
    bool template_holds(
        std::string_view reply_body) const;  ///< its prompt ends with the delivered text
    void begin_next();                       ///< pass() now gets the body of the next server
    /// Why what the next server says cannot be passed on; "": nothing is wrong with it.
    const std::string& failure() const { return failure_; }
    std::string request_body() const;  ///< for the next server

    /// What is left of the limit that the client asked for; absent: it asked for none.
    std::optional<std::int64_t> tokens_left() const;
    std::int64_t delivered_tokens() const {
        return tokens_;
    }  ///< events with text, each of which carries about one
    std::size_t delivered_bytes() const { return text_.size(); }

private:
    Continuation(std::string body, std::optional<std::int64_t> max_tokens)
        : body_(std::move(body)), max_tokens_(max_tokens) {}
    void event(std::string_view bytes, std::string& out);
    void read(std::string_view data, std::string_view bytes, std::string& out);
    bool take_out_repetition(std::string_view content, std::string_view data, std::string& out);
    std::optional<boost::json::object> with_delivered() const;

    std::string body_;  ///< of the client's request
    std::optional<std::int64_t> max_tokens_;
    std::string held_;        ///< the beginning of an event
    std::string text_;        ///< delivered so far
    std::string repetition_;  ///< what the next server may still repeat
    std::string obstacle_, failure_;
    std::int64_t tokens_ = 0;
    bool finished_ = false, later_ = false, begins_ = false;
    wire::JsonReader json_;
};

}  // namespace fullstop::gateway
