// Which form a body has — SSE, JSON lines, one JSON text, or something that is no answer — and its
// parts in that form. Seen from the bytes; the content type only decides where they do not.
#pragma once

#include <string>
#include <string_view>

#include "wire/http/sse.h"

namespace fullstop::wire {

enum class BodyForm { kUndecided, kSse, kJsonLines, kJson, kOther };

class BodySink : public SseSink {
public:
    /// A line, or the whole of a body, that ought to be JSON. False, and without any effect, when
    /// it is not.
    virtual bool on_json(std::string_view text) = 0;
    /// A part that could not be understood in the form the body has.
    virtual void on_unread(std::string_view text) = 0;
};

class BodyReader {
public:
    void expect(std::string_view content_type) { content_type_ = content_type; }
    void feed(std::string_view piece, BodySink& sink);
    /// No more bytes: what was held back is delivered. Calling it again does nothing.
    void finish(BodySink& sink);

    BodyForm form() const { return form_; }
    bool overflowed() const { return overflowed_ || sse_.overflowed(); }
    std::size_t held_bytes() const { return start_.size() + line_.size() + sse_.held_bytes(); }

private:
    void decide(bool last, BodySink& sink);
    void take(std::string_view piece, BodySink& sink);
    void take_lines(std::string_view piece, BodySink& sink);
    void json_line(std::string_view line, BodySink& sink);

    std::string content_type_;
    BodyForm form_ = BodyForm::kUndecided;
    std::string start_;  ///< first bytes while undecided; then what is held of a JSON line or body
    std::string line_;   ///< a JSON line that came in several pieces
    SseReader sse_;
    bool first_line_ = true;
    bool finished_ = false;
    bool overflowed_ = false;
};

}  // namespace fullstop::wire
