// How a scripted answer ends, fact by fact: every combination that real servers and proxies were
// seen to produce, honest or not. The dialect's writer turns it into bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "answer/end.h"

namespace fullstop::simulator {

/// What happens to the body after the last event.
enum class BodyEnd {
    kLastChunk,       ///< valid end of the framing
    kFin,             ///< FIN at an event's edge, the last chunk missing
    kFinInsideChunk,  ///< FIN in the middle of a chunk
    kReset,           ///< RST
};

/// How an in-band error is written.
enum class ErrorForm {
    kData,   ///< `data: {"error": ...}`
    kField,  ///< `error: {...}`, a field of its own: llama-server before 2026
};

struct Ending {
    std::optional<std::string> reason =
        {};  ///< "stop", "length", "abort", ...; absent: no finish event
    std::optional<answer::ServerError> error =
        {};  ///< in band after the first byte, else the HTTP status
    ErrorForm error_form = ErrorForm::kData;
    bool error_always_in_band = false;  ///< HTTP 200 even when nothing was sent yet
    bool html_error = false;            ///< a proxy's error page instead of JSON
    bool terminator = true;             ///< [DONE] or the dialect's own
    bool usage = true;                  ///< token counts, where the server gives any
    BodyEnd body = BodyEnd::kLastChunk;
    std::optional<std::string> stop_type =
        {};                  ///< llama-server's word, when it differs from what `reason` implies
    bool truncated = false;  ///< llama-server's flag: the window was full
    std::optional<std::string> eos_reason = {};   ///< TabbyAPI's word beside finish_reason
    std::optional<std::string> stop_reason = {};  ///< vLLM's word beside finish_reason
    std::optional<std::string> verbatim =
        {};                ///< these bytes are the error event, or the body of a refusal
    bool opening = false;  ///< the dialect's first event comes before the end of an empty answer
    bool nameless_model = false;  ///< an empty chunk with "model":"": Ollama's mutated error
};

inline Ending natural_ending() { return {.reason = "stop"}; }
inline Ending limit_ending() { return {.reason = "length"}; }
/// A body that just ends, with this framing.
inline Ending silent_ending(BodyEnd body) {
    return {.terminator = false, .usage = false, .body = body};
}
/// An error object and nothing after it but the last chunk.
inline Ending error_ending(answer::ServerError error) {
    return {.error = std::move(error), .terminator = false, .usage = false};
}

}  // namespace fullstop::simulator
