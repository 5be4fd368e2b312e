// What the events of one response have said so far, in the words of the Record: the dialects write
// here.
//
// Keeps what cannot be written at once: state per choice index, thinking inside content, one stamp
// per event.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/record.h"
#include "wire/dialects/think_splitter.h"
#include "wire/json/json.h"

namespace fullstop::wire {

/// What had been said when the stream's own end mark came; known before the record tells choices
/// apart.
enum class OwnEnd {
    kNone,           ///< it has not come
    kTrue,           ///< every choice that was opened had the reason of its end
    kWithoutReason,  ///< one had none
    kBehindAnError,
};

class Transcript {
public:
    explicit Transcript(answer::Record& record) : record_(&record) {}

    answer::Record& record() { return *record_; }

    /// Everything until end_event() belongs to one event that was complete at `at`.
    void begin_event(base::Duration at);
    void end_event();

    void content(std::size_t choice, std::string_view piece);  ///< may hold <think> tags
    /// All content so far, as servers send it that repeat themselves; only what is new counts.
    void whole_content(std::size_t choice, std::string_view all);
    void reasoning(std::size_t choice, std::string_view piece);  ///< named as such by the server
    void tool_call(std::size_t choice, std::string_view piece);  ///< name or arguments
    /// `word` null, "null" and "" are not a finish. SGLang's object form is known by its `type`.
    void finish(std::size_t choice, JsonValue word);
    void finish(std::size_t choice, std::string_view word);
    /// The stream's own end mark.
    void terminator();
    void error(answer::ServerError error);
    /// The HTTP status speaks of a failure: whatever the body says is about that.
    bool failed() const {
        return record_->status && (*record_->status < 200 || *record_->status >= 300);
    }
    /// A terminal field as on the wire; null and "" say nothing and are left out.
    void detail(std::string_view key, JsonValue value);
    /// The event is one of several, not a whole answer.
    void partial() { partial_ = true; }

    void speaks(answer::Api api) { dialect_ = api; }
    std::optional<answer::Api> dialect() const { return dialect_; }

    OwnEnd own_end() const { return own_end_; }
    bool saw_partial() const { return partial_; }
    bool saw_error_only() const {
        return !record_->server_errors.empty() && record_->text_events == 0 && !record_->end.reason;
    }

    /// Which limit on what is kept has been reached; "" while none has. Facts of the end are still
    /// read, text is not kept.
    std::string_view full() const { return full_; }

    /// The body is over. `whole`: one JSON body held the answer, so its moments and its number of
    /// events mean nothing.
    void close(bool whole);

private:
    struct Choice {
        std::string text, reasoning,
            tool_calls;  ///< of choices beyond the first, which writes into the record
        ThinkSplitter splitter;
        std::string finish;
        int finish_events = 0;
        std::size_t whole_bytes = 0;  ///< length of what whole_content() said last
    };
    Choice* choice(std::size_t index);
    /// The part of `piece` that there is still room for.
    std::string_view fitting(std::string_view piece);
    void saw_text() { event_has_text_ = true; }
    void name_choices();

    answer::Record* record_;
    std::vector<Choice> choices_;
    base::Duration at_{};
    bool event_has_text_ = false;
    bool event_has_answer_ = false;
    bool partial_ = false;
    OwnEnd own_end_ = OwnEnd::kNone;
    std::size_t kept_ = 0;  ///< bytes of text of any kind
    std::string_view full_;
    std::optional<answer::Api> dialect_;
};

}  // namespace fullstop::wire
