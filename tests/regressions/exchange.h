// One exchange of a public bug report, rebuilt with invented values: bytes with a time, read by the
// one AnswerReader, judged.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "judge/verdict.h"
#include "wire/answer_reader.h"
#include "wire/http/response_text.h"

namespace fullstop::regressions {

using answer::Cause;
using answer::Confidence;
using answer::Layer;
using End = wire::StreamEnd::Kind;

/// `{"choices":[...]}` with a content delta; `finish` "" is JSON null.
inline std::string delta(std::string_view text, std::string_view finish = "") {
    const std::string reason = finish.empty() ? "null" : "\"" + std::string(finish) + "\"";
    return R"({"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":")" +
           std::string(text) + R"("},"finish_reason":)" + reason + "}]}";
}
inline std::string reasoning(std::string_view text) {
    return R"({"id":"c1","model":"m","choices":[{"index":0,"delta":{"reasoning_content":")" +
           std::string(text) + R"("},"finish_reason":null}]})";
}
inline std::string finish(std::string_view reason) {
    return R"({"id":"c1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":")" +
           std::string(reason) + R"("}]})";
}
inline std::string usage(int prompt, int output) {
    return R"({"id":"c1","model":"m","choices":[],"usage":{"prompt_tokens":)" +
           std::to_string(prompt) + R"(,"completion_tokens":)" + std::to_string(output) +
           R"(,"total_tokens":)" + std::to_string(prompt + output) + "}}";
}

class Exchange {
public:
    explicit Exchange(std::string id = "a1", double sent_ms = 0) : now_ms_(sent_ms) {
        record_.request.id = std::move(id);
        record_.timeline.started = record_.timeline.sent = base::from_ms(sent_ms);
    }
    Exchange& asks(std::int64_t max_tokens, std::string prompt = "p") {
        record_.request.prompt_id = std::move(prompt);
        record_.request.max_tokens = base::Tokens{max_tokens};
        record_.requested_max_tokens =
            answer::Fact<base::Tokens>::measured({max_tokens}, "sent with the request");
        return *this;
    }
    Exchange& stops_at(std::string stop) {
        record_.request.stop.push_back(std::move(stop));
        return *this;
    }
    /// Raw bytes `after_ms` after the last ones.
    Exchange& bytes(std::string text, double after_ms = 20) {
        now_ms_ += after_ms;
        pieces_.push_back({now_ms_, std::move(text)});
        return *this;
    }
    Exchange& stream(std::string_view type = "text/event-stream",
                     const wire::Headers& headers = {}) {
        return bytes(wire::stream_head(type, headers), 5);
    }
    Exchange& chunk(std::string_view text, double after_ms = 20) {
        return bytes(wire::chunk(text), after_ms);
    }
    Exchange& event(std::string_view json, double after_ms = 20) {
        return chunk(wire::sse_event(json), after_ms);
    }
    Exchange& events(int count, std::string_view text, double every_ms = 20) {
        for (int i = 0; i < count; ++i) event(delta(text), every_ms);
        return *this;
    }
    Exchange& done() { return chunk("data: [DONE]\n\n", 1); }
    Exchange& last_chunk() { return bytes(wire::last_chunk(), 1); }
    Exchange& whole(int status, std::string_view body, std::string_view type = "application/json",
                    const wire::Headers& headers = {}, double after_ms = 50) {
        return bytes(wire::whole_response(status, type, body, headers), after_ms);
    }
    /// The stream is over `after_ms` after its last bytes.
    answer::Record ends(End kind = End::kFin, double after_ms = 0) const {
        answer::Record record = record_;
        wire::AnswerReader reader(record);
        for (const Piece& piece : pieces_)
            reader.bytes(piece.bytes, base::from_ms(piece.at_ms), answer::StampClock::kKernel);
        reader.end({kind}, base::from_ms(now_ms_ + after_ms));
        return record;
    }

private:
    struct Piece {
        double at_ms;
        std::string bytes;
    };
    answer::Record record_;
    std::vector<Piece> pieces_;
    double now_ms_;
};

inline judge::Finding judged(const answer::Record& record) {
    return judge::judge_together({record}).findings.at(0);
}

inline judge::Finding judged(const answer::Record& record, const answer::Record& alone) {
    return judge::judge_together({record}, {alone}).findings.at(0);
}

inline std::string word(const judge::Finding& finding) {
    return std::string(answer::to_string(finding.cause));
}

}  // namespace fullstop::regressions
