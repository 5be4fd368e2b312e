// Server-sent events out of a body cut anywhere (WHATWG HTML, 9.2), for judging and not for
// browsing: what the standard drops is delivered too — comments, unknown fields (an old llama.cpp
// writes its errors as `error: {...}`), bare JSON lines, and a last event without its blank line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fullstop::wire {

/// Receives what a body holds; views live until the call returns.
class SseSink {
public:
    virtual ~SseSink() = default;
    /// One dispatched event. `name` is of its `event:` field, "" when it had none.
    virtual void on_event(std::string_view name, std::string_view data) = 0;
    virtual void on_comment(std::string_view text) = 0;
    /// A line whose field name the standard does not know; `line` is the whole of it.
    virtual void on_unknown_field(std::string_view name, std::string_view value,
                                  std::string_view line) = 0;
};

class SseReader {
public:
    void feed(std::string_view piece, SseSink& sink);
    /// The body is over: a line without its end and an event without its blank line are delivered.
    void finish(SseSink& sink);
    /// A line or event beyond kMaxEventBytes; nothing more is read.
    bool overflowed() const { return overflowed_; }
    std::size_t held_bytes() const {
        return partial_.size() + data_.size();
    }  ///< of an event that is not whole

private:
    void line(std::string_view text, SseSink& sink);
    void dispatch(SseSink& sink);

    std::string partial_;  ///< a line whose end has not come yet
    std::string whole_;    ///< the same once its end has come
    std::string_view
        view_;              ///< data of the current event while it is one line of the current piece
    std::string data_;      ///< data of the current event otherwise
    bool in_view_ = false;  ///< which of the two holds it
    bool has_data_ = false;
    std::string name_;
    bool skip_lf_ = false;  ///< the last line ended in \r: a \n that follows belongs to it
    bool started_ = false;  ///< a byte order mark is looked for once
    bool overflowed_ = false;
};

}  // namespace fullstop::wire
