// Which hop wrote the response head: names of gateways that give themselves away by a header, an
// HTML page or a rewritten error. Only what is named is known; a silent gateway shows nothing.
#pragma once

#include <optional>
#include <string>

#include "answer/record.h"

namespace fullstop::judge {

struct Hop {
    std::string name;   ///< "nginx", "envoy", "cloudflare", "litellm", ...
    std::string where;  ///< the header that says so
};

std::optional<Hop> gateway_of(const answer::Record& record);

/// This gateway is known to write a finish reason, `[DONE]` and usage after an upstream that ended
/// without them.
bool invents_ends(const Hop& hop);

/// The error body is a page for people: no LLM server of the catalogue sends one.
bool html_body(const answer::Record& record);

/// Seconds between the first and the last `created` of the events: some servers stamp each event
/// with their own clock. Absent when the stamps never change.
struct ServerStamps {
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t span_s() const { return last - first; }
};
std::optional<ServerStamps> server_stamps(const answer::Record& record);

}  // namespace fullstop::judge
