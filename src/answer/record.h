// The noun: one answer's life, seen from one vantage point. What was asked, when each thing
// happened, what came, and the four facts of its end. It holds what was recorded and nothing that
// was concluded: causes are judge's.
//
// Written by probe (client), gateway (middle) and engine (inside); kept by store, read by judge,
// shown by report.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "answer/end.h"
#include "answer/fact.h"
#include "answer/request.h"
#include "base/time.h"
#include "base/units.h"

namespace fullstop::answer {

/// Which clock gave the receive stamps.
enum class StampClock { kUserSpace, kKernel };

std::string_view to_string(StampClock);

/// Moments of one exchange, relative to the start of the run; absent when the moment never came.
/// `sent` is the origin of TTFT: the whole request has been handed to the kernel. Token moments are
/// those of the read that completed the event.
struct Timeline {
    std::optional<base::Duration> started;  ///< decision to send (connect begins)
    std::optional<base::Duration> connected;
    std::optional<base::Duration> sent;
    std::optional<base::Duration> headers;
    std::optional<base::Duration> first_byte;  ///< of the body
    std::optional<base::Duration>
        first_comment;  ///< SSE keepalive: the server is alive but has no token yet
    std::optional<base::Duration>
        first_token;  ///< of any kind: reasoning, tool call or answer text
    std::optional<base::Duration> first_answer;  ///< of the answer itself
    std::optional<base::Duration> last_token;
    std::optional<base::Duration> finish;  ///< event that carried the finish reason
    std::optional<base::Duration> terminator;
    std::optional<base::Duration> ended;  ///< connection or body over
    StampClock clock = StampClock::kUserSpace;
    std::vector<base::Duration>
        gaps;  ///< between consecutive text events (a chunk may hold several tokens)
};

/// Raw response bytes as they came from the socket (head and chunk framing in place), with the
/// arrival of each read.
struct Capture {
    struct Arrival {
        base::Duration at;      ///< relative to the start of the run
        std::uint64_t end = 0;  ///< offset of the first byte after this read
    };
    std::string bytes;
    std::vector<Arrival> arrivals;
    bool truncated = false;  ///< stopped keeping at the limit on capture size; the reader went on
};

/// What the raw bytes showed beside the answer: legal shapes that common clients misread, and marks
/// of a hop.
struct StreamShape {
    bool crlf_events = false;      ///< events end in CRLF
    bool tight_data = false;       ///< no space after `data:`
    bool id_or_retry = false;      ///< `id:` or `retry:` lines
    bool leading_colon = false;    ///< a text that begins with a colon, as a comment does
    bool comment_as_data = false;  ///< a keepalive comment that came back as data
    std::optional<std::int64_t>
        created_first;  ///< `created` of the first event, in seconds of the server's own clock
    std::optional<std::int64_t> created_last;

    bool operator==(const StreamShape&) const = default;
};

struct Record {
    Request request;
    Timeline timeline;

    // HTTP
    std::optional<int> status;
    std::map<std::string, std::string> headers;  ///< lower-case names; of the response
    std::string http_version;                    ///< "1.1", "1.0"
    Framing framing = Framing::kNone;

    // What came
    std::string text;        ///< the answer (UTF-8, invalid bytes kept)
    std::string reasoning;   ///< thinking, in any of its spellings
    std::string tool_calls;  ///< concatenated argument text of tool calls
    std::int64_t text_events =
        0;                      ///< events that carried text of any kind; an event is not a token
    std::int64_t comments = 0;  ///< SSE comments
    std::int64_t unread_events = 0;  ///< events that could not be understood (kept in the capture)
    std::string response_id;
    std::string response_model;  ///< as the last event named it; "" can be evidence (Ollama)
    StreamShape shape;

    // Its end
    EndFacts end;
    Disconnect disconnect;
    std::vector<ServerError> server_errors;
    std::map<std::string, std::string>
        stop_details;       ///< verbatim terminal fields: stop_type, stopping_word, truncated,
                            ///< matched_stop, stop_reason, eos_reason, done_reason, ...
    int finish_events = 0;  ///< events with a finish reason; two are a protocol defect, not a cut

    // The numbers of the method
    Fact<base::Tokens> requested_max_tokens =
        Fact<base::Tokens>::unavailable("not sent: left to the server");
    Fact<base::Tokens> effective_max_tokens =
        Fact<base::Tokens>::unavailable("the server does not reveal it");
    Fact<base::Tokens> prompt_tokens =
        Fact<base::Tokens>::unavailable("the server did not report it");
    Fact<base::Tokens> cached_tokens =
        Fact<base::Tokens>::unavailable("the server did not report it");
    Fact<base::Tokens> output_tokens =
        Fact<base::Tokens>::unavailable("the server did not report it");
    Fact<base::Tokens> reasoning_tokens =
        Fact<base::Tokens>::unavailable("the server did not report it");
    Fact<base::Tokens> counted_tokens = Fact<base::Tokens>::unavailable("nothing was counted");
    Fact<double> queue_ms = Fact<double>::unavailable("not reported and not derivable");
    Fact<double> prompt_ms =
        Fact<double>::unavailable("the server did not report it");  ///< server's own prefill time
    Fact<double> client_deadline_ms = Fact<double>::unavailable("none set");
    Fact<double> gateway_deadline_ms = Fact<double>::unavailable("not announced");
    Fact<double> server_deadline_ms = Fact<double>::unavailable("not announced");
    DeadlineFired deadline_fired = DeadlineFired::kNone;
    Fact<std::int64_t> preemptions =
        Fact<std::int64_t>::unavailable("the server does not report it per request");
    Fact<double> paused_ms = Fact<double>::unavailable("the server does not report it per request");
    Fact<base::Bytes> kv_bytes = Fact<base::Bytes>::unavailable("bytes per token unknown");
    Fact<base::Bytes> memory_free_bytes = Fact<base::Bytes>::unavailable("not sampled");
    std::optional<std::string>
        fullstop_cause;  ///< stop.cause of a fullstop server or gateway, verbatim

    Capture capture;  ///< may be emptied once stored

    /// Length used for comparing: reported output tokens, else counted ones.
    std::optional<std::int64_t> length_tokens() const;
    std::optional<base::Duration> elapsed() const;  ///< sent to ended
    std::optional<base::Duration> ttft() const;     ///< sent to first token of any kind
    std::optional<base::Duration> ttft_answer() const;
    /// Silence between the last text event and the end.
    std::optional<base::Duration> last_silence() const;
};

}  // namespace fullstop::answer
