// An upstream's response head as the client gets it: its own lines in its own order, without those
// that belong to its connection or its framing, and with the gateway's.
#pragma once

#include <string>
#include <string_view>

#include "wire/http/http_framing.h"
#include "wire/http/request_text.h"

namespace fullstop::gateway {

/// How the body is framed towards the client.
enum class ClientFraming {
    kChunked,     ///< the last chunk is the gateway's word that the answer is whole
    kSized,       ///< the upstream's length
    kUntilClose,  ///< as ambiguous as the upstream left it
    kNone,        ///< no body
};

/// Which form the content type announces; of an encoded body none can be read.
enum class BodyForm { kSse, kLines, kJson, kOther };
BodyForm announced_form(const wire::ResponseHead& head);
/// Events or lines, so that an error can stand behind what came before.
constexpr bool is_stream(BodyForm form) {
    return form == BodyForm::kSse || form == BodyForm::kLines;
}

/// What an answer with this head is framed as. `upstream` is the framing seen; `head_only`: the
/// request was HEAD.
ClientFraming client_framing(const wire::ResponseHead& head, answer::Framing upstream,
                             bool head_only);

/// `raw`: all head bytes as received, interim heads included. `ours` replaces fields of the same
/// name.
std::string client_head(std::string_view raw, const wire::ResponseHead& head, ClientFraming framing,
                        const wire::Headers& ours);

/// The coding of the body; "" for none.
std::string_view content_encoding(const wire::ResponseHead& head);
inline bool is_encoded(const wire::ResponseHead& head) { return !content_encoding(head).empty(); }
/// A NUL, or a carriage return without its line feed: what some reader takes for the end of a line
/// or of the text (RFC 9110, 5.5).
bool holds_control_bytes(std::string_view raw_head);

/// A content-length that is repeated or no number: whoever believes it may be wrong.
bool untrusted_length(const wire::ResponseHead& head);

/// The connection may carry another response behind this one: HTTP/1.1, no "close", and one kind of
/// framing only.
bool stays_open(const wire::ResponseHead& head);

}  // namespace fullstop::gateway
