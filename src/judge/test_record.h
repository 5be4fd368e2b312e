// Records for tests, in a line each: a builder that starts from a clean, streamed, natural answer.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "answer/record.h"

namespace fullstop::judge {

class RecordBuilder {
public:
    explicit RecordBuilder(std::string id) {
        record_.request.id = std::move(id);
        record_.request.arm = "deployed";
        record_.status = 200;
        record_.framing = answer::Framing::kChunked;
        record_.end = {.reason = "stop",
                       .error = {},
                       .terminator = true,
                       .transport = answer::Transport::kClean};
        record_.disconnect = {answer::Disconnect::By::kNone, answer::Disconnect::Kind::kNone, 0};
        record_.response_model = "m";
        says("All is said.", 4);
    }

    RecordBuilder& asks(std::string prompt, std::int64_t seed = 1, std::int64_t max_tokens = 512) {
        record_.request.prompt_id = std::move(prompt);
        record_.request.seed = seed;
        record_.request.max_tokens = base::Tokens{max_tokens};
        record_.requested_max_tokens =
            answer::Fact<base::Tokens>::measured({max_tokens}, "sent with the request");
        return *this;
    }
    RecordBuilder& at(int concurrency, std::string phase = "level", std::string arm = "deployed") {
        record_.request.concurrency = concurrency;
        record_.request.phase = std::move(phase);
        record_.request.arm = std::move(arm);
        return *this;
    }
    RecordBuilder& says(std::string text, std::int64_t tokens) {
        record_.text = std::move(text);
        record_.text_events = tokens;
        record_.output_tokens =
            answer::Fact<base::Tokens>::reported({tokens}, "usage.completion_tokens");
        record_.counted_tokens = answer::Fact<base::Tokens>::measured({tokens}, "text events");
        return *this;
    }
    RecordBuilder& prompt_tokens(std::int64_t tokens) {
        record_.prompt_tokens =
            answer::Fact<base::Tokens>::reported({tokens}, "usage.prompt_tokens");
        return *this;
    }
    RecordBuilder& reason(std::string word) {
        record_.end.reason = std::move(word);
        return *this;
    }
    /// Sent at `sent`, first token after `ttft`, then a token every `gap`; the body ends `silence`
    /// after the last. Milliseconds.
    RecordBuilder& timed(double sent, double ttft = 100, double gap = 20, double silence = 0) {
        auto& timeline = record_.timeline;
        timeline.started = timeline.sent = base::from_ms(sent);
        timeline.headers = timeline.first_byte = timeline.first_token = timeline.first_answer =
            base::from_ms(sent + ttft);
        const auto gaps =
            static_cast<std::size_t>(std::max<std::int64_t>(0, record_.text_events - 1));
        timeline.gaps.assign(gaps, base::from_ms(gap));
        timeline.last_token =
            *timeline.first_token + base::from_ms(gap) * static_cast<std::int64_t>(gaps);
        timeline.ended = *timeline.last_token + base::from_ms(silence);
        return *this;
    }
    /// An error in the stream after the text: no reason, no usage, no terminator.
    RecordBuilder& error(std::string text, int status = 500) {
        unlabelled();
        record_.end.error = answer::ServerError{.status = status,
                                                .code = std::to_string(status),
                                                .type = "server_error",
                                                .text = std::move(text),
                                                .where = answer::ErrorPlace::kStream};
        record_.server_errors = {*record_.end.error};
        return *this;
    }
    /// Neither reason nor terminator nor usage.
    RecordBuilder& unlabelled(answer::Transport transport = answer::Transport::kClean) {
        record_.end = {.reason = {}, .error = {}, .terminator = false, .transport = transport};
        record_.output_tokens =
            answer::Fact<base::Tokens>::unavailable("the stream ended without usage");
        record_.prompt_tokens =
            answer::Fact<base::Tokens>::unavailable("the stream ended without usage");
        if (transport == answer::Transport::kClosedByUs)
            record_.disconnect.by = answer::Disconnect::By::kUs;
        return *this;
    }
    /// Refused with a status before any text.
    RecordBuilder& refused(int status, std::string text) {
        says("", 0);
        error(std::move(text), status);
        record_.status = status;
        record_.end.error->where = answer::ErrorPlace::kHttp;
        return *this;
    }
    RecordBuilder& header(std::string name, std::string value) {
        record_.headers[std::move(name)] = std::move(value);
        return *this;
    }
    RecordBuilder& detail(std::string name, std::string value) {
        record_.stop_details[std::move(name)] = std::move(value);
        return *this;
    }
    answer::Record& edit() { return record_; }
    answer::Record build() const { return record_; }

private:
    answer::Record record_;
};

}  // namespace fullstop::judge
