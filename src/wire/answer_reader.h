// From response bytes to one answer: the single reader for live sockets, captures and the
// simulator.
//
// Bytes go in exactly as they came from the socket (HTTP head, chunk framing and all); facts come
// out in the Record given at construction: status, framing, text, reasoning, the four end facts,
// token counts, gaps. It never judges. Any cut of the same bytes into calls gives the same record,
// but for the moments (property test per dialect).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "answer/record.h"
#include "base/time.h"
#include "wire/dialects/transcript.h"

namespace fullstop::wire {

/// How the byte stream ended, as the owner of the socket saw it.
struct StreamEnd {
    enum class Kind { kFin, kRst, kTimedOut, kClosedByUs, kUnknown };
    Kind kind = Kind::kFin;
};

class AnswerReader {
public:
    /// What the input looks like. kHttp: raw bytes from a socket. kBody: a bare body without head
    /// (transport unknown unless `end` says otherwise). kUnframed: a head, then a body from which
    /// the framing was removed (`curl -i`); the transport is unknown in the same way.
    enum class Input { kHttp, kBody, kUnframed };

    /// `record` must outlive the reader. Its request.api is a hint only: the dialect is recognised
    /// by content, so that a llama-server answering OpenAI style, an Ollama line stream or an HTML
    /// page are all read for what they are.
    explicit AnswerReader(answer::Record& record, Input input = Input::kHttp);
    ~AnswerReader();
    AnswerReader(AnswerReader&&) noexcept;
    AnswerReader& operator=(AnswerReader&&) noexcept;

    /// Next bytes; `at` relative to the start of the run.
    void bytes(std::string_view bytes, base::Duration at, answer::StampClock clock);
    /// The stream is over. Completes end facts, disconnect, derived numbers. A second call changes
    /// nothing.
    void end(StreamEnd end, base::Duration at);

    /// The response is complete by its own framing (last chunk, content-length): the client may
    /// close now.
    bool complete() const;
    /// In which dialect the answer came; absent while no event showed one.
    std::optional<answer::Api> dialect() const;
    OwnEnd own_end() const;
    /// Input beyond the limits (head, event size): the client should close; the record says which
    /// limit.
    bool overflowed() const;
    /// Kept until the event, line or body that they belong to is whole.
    std::size_t held_bytes() const;
    /// Which limit on what one answer may make us keep or read has been passed, in words; "" while
    /// none has. Beyond it no text is kept, and the facts of the end are still read: a relay may go
    /// on, a probe ends the answer.
    std::string_view full() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fullstop::wire
