// Where a response's head ends, which bytes are body, and whether the body is whole: HTTP/1.x
// framing as facts.
//
// Incremental and pull-style: bytes come in any cut, body pieces go out as views into them (nothing
// is copied but the head). It reports, and never repairs: a missing last chunk stays missing. It
// does not decode content encodings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "answer/end.h"

namespace fullstop::wire {

struct ResponseHead {
    std::string version;  ///< "1.1", "1.0", "2"
    int status = 0;
    std::string phrase;
    std::map<std::string, std::string> headers;  ///< lower-case names; repeated ones joined by ", "
};

/// One response head without its blank line; absent when it is not one.
std::optional<ResponseHead> parse_head(std::string_view text);

class HttpFraming {
public:
    /// Takes bytes off the front of `input` and returns the next piece of the body; "" when the
    /// head has just ended, or `input` was used up without one. Call until `input` is empty or
    /// complete().
    std::string_view next(std::string_view& input);

    bool head_complete() const { return state_ > State::kHead; }
    const ResponseHead& head() const {
        return head_;
    }  ///< of the final response; 1xx heads are passed over
    answer::Framing framing() const { return framing_; }
    /// The response is over by its own framing. Never true for a close-delimited body.
    bool complete() const { return state_ == State::kComplete; }
    bool last_chunk_seen() const { return last_chunk_; }
    /// Announced and not yet received: of the content-length, or of the current chunk.
    std::uint64_t missing_bytes() const;
    /// The bytes cannot be an HTTP response, or a chunk-size line was no number. The rest is handed
    /// on as body.
    bool malformed() const { return malformed_; }
    bool overflowed() const { return overflowed_; }

private:
    enum class State {
        kHead,
        kSized,
        kUntilClose,
        kChunkLine,
        kChunkBody,
        kChunkEnd,
        kTrailer,
        kComplete
    };

    void take_head(std::string_view& input);
    void begin_body();
    bool take_line(std::string_view& input, std::size_t limit);
    void begin_chunk();
    void give_up();

    State state_ = State::kHead;
    ResponseHead head_;
    answer::Framing framing_ = answer::Framing::kNone;
    std::string pending_;  ///< head, chunk-size line or trailer so far
    std::string spilled_;  ///< taken for framing, but body after all
    std::uint64_t left_ = 0;
    bool last_chunk_ = false;
    bool malformed_ = false;
    bool overflowed_ = false;
    std::size_t head_bytes_ = 0;
};

/// Whether a body begins with a chunk-size line: the framing of a `transfer-encoding: chunked`
/// response is still there.
bool starts_with_chunk(std::string_view body);

}  // namespace fullstop::wire
