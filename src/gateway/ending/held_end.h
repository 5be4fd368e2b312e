// What makes an answer look finished (`[DONE]`, `message_stop`, `response.completed`, Ollama's line
// with "done":true) is held back until the end of the answer is judged: a client that stops there
// would take a cut answer for a whole one. Nothing else waits, and what was held back goes on
// unchanged behind a whole answer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "wire/json/json.h"

namespace fullstop::gateway {

class HeldEnd {
public:
    /// How ends are known: by one word as the data of an event, so that of other events nothing
    /// waits; by the type of an event, or a member of a line, for which each waits until it is
    /// complete.
    enum class By { kDone, kEventType, kLine };
    explicit HeldEnd(By by) : by_(by) {}

    /// Bytes of the body in, those that may go on out.
    std::string pass(std::string_view body);
    /// An end has come; it and what followed it are held back.
    bool ended() const { return ended_; }
    std::string_view held() const { return held_; }
    /// What of it goes on, once it is judged: all behind an answer that is finished, else only what
    /// could be no end.
    std::string take(bool finished);

private:
    std::string pass_lines(std::string_view body);
    std::string pass_events(std::string_view body);
    bool is_end(std::string_view event);

    By by_;
    bool ended_ = false, inside_line_ = false;
    std::string held_;
    std::size_t line_ = 0,
                search_ =
                    0;  ///< in held_: where its last line begins, where to look for that line's end
    wire::JsonReader json_;
};

}  // namespace fullstop::gateway
