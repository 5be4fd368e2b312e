// The serving side's bytes: response head, chunks, SSE events. Used by the scripted server and by
// `fullstop serve`; each piece stands alone, so that a server may also leave one out on purpose.
#pragma once

#include <string>
#include <string_view>

#include "wire/http/request_text.h"

namespace fullstop::wire {

/// Status line, headers and the blank line. The phrase is the registered one ("" when unknown).
std::string response_head(int status, const Headers& headers);
/// Head with Content-Type, Content-Length and `Connection: close` unless `headers` say otherwise,
/// and the body.
std::string whole_response(int status, std::string_view content_type, std::string_view body,
                           const Headers& headers = {});
/// Head of a chunked stream: `text/event-stream` or `application/x-ndjson`, no caching, no proxy
/// buffering.
std::string stream_head(std::string_view content_type, const Headers& headers = {});

/// `data` as one chunk of chunked framing; "" for no data, since a chunk of no bytes would end the
/// body.
std::string chunk(std::string_view data);
std::string last_chunk();

/// `data:` lines (one for each line of `data`) and the blank line, with an `event:` line before
/// them when named.
std::string sse_event(std::string_view data, std::string_view name = {});
std::string sse_comment(std::string_view text = {});

}  // namespace fullstop::wire
