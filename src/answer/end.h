// How an answer ended: four independent facts, taken from bytes and framing. None of them is proof
// by itself.
//
// `finish_reason: stop` is written by servers for cut answers, `[DONE]` follows errors, and a valid
// last chunk follows a crash behind some proxies (knowledge: servers, 1.1 and 3.2). So the four
// stay four, and judge weighs them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullstop::answer {

/// How the response body ended on the wire.
enum class Transport {
    kClean,       ///< last chunk seen, content-length met, or a close-delimited body ended by FIN
    kTruncated,   ///< FIN inside a chunk, before the last chunk, or before content-length
    kReset,       ///< RST
    kTimedOut,    ///< one of our own limits on waiting fired
    kClosedByUs,  ///< we closed: a deadline asked for, or an interruption
    kRefused,     ///< no connection came about
    kUnknown,     ///< the capture does not say (a bare body)
};

/// How the body's end was to be recognised. With kUntilClose a cut cannot be told from an end by
/// framing.
enum class Framing { kChunked, kContentLength, kUntilClose, kNone };

/// Where an error was seen.
enum class ErrorPlace { kHttp, kStream, kLog };

struct ServerError {
    std::optional<int> status;  ///< HTTP status, or the number inside the error object
    std::string code;  ///< verbatim, "" when absent; some servers write a number, some a string
    std::string type;  ///< verbatim, "" when absent
    std::string text;  ///< verbatim message (or the start of a body that is not JSON)
    ErrorPlace where = ErrorPlace::kHttp;
    bool plain = false;  ///< plain words where an event was due: clients pass over them
    bool operator==(const ServerError&) const = default;
};

struct EndFacts {
    std::optional<std::string> reason;  ///< raw word of the last finish_reason, stop_type,
                                        ///< done_reason; JSON null and "null" are absent
    std::optional<ServerError> error;   ///< first error object, in band or as the HTTP status
    bool terminator =
        false;  ///< `[DONE]`, NDJSON "done":true, native "stop":true, or a whole JSON body
    Transport transport = Transport::kUnknown;
    bool operator==(const EndFacts&) const = default;
};

/// Who closed the connection first, how, and after how many received bytes.
struct Disconnect {
    enum class By { kNone, kUs, kPeer, kUnknown };
    enum class Kind { kNone, kFin, kRst };
    By by = By::kUnknown;
    Kind kind = Kind::kNone;
    std::int64_t at_byte = 0;
    bool operator==(const Disconnect&) const = default;
};

/// Which wall-clock limit fired, if any.
enum class DeadlineFired { kNone, kClient, kGateway, kServer };

std::string_view to_string(Transport);
std::string_view to_string(Framing);
std::string_view to_string(ErrorPlace);
std::string_view to_string(Disconnect::By);
std::string_view to_string(Disconnect::Kind);
std::string_view to_string(DeadlineFired);
std::optional<Transport> parse_transport(std::string_view);
std::optional<Framing> parse_framing(std::string_view);
std::optional<ErrorPlace> parse_error_place(std::string_view);
std::optional<Disconnect::By> parse_disconnect_by(std::string_view);
std::optional<Disconnect::Kind> parse_disconnect_kind(std::string_view);
std::optional<DeadlineFired> parse_deadline_fired(std::string_view);

}  // namespace fullstop::answer
