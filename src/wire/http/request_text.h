// One answer::Request as HTTP/1.1 bytes in the dialect of its server.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "answer/request.h"
#include "base/result.h"

namespace fullstop::wire {

/// A parsed server URL: root or its /v1. `base_path` is what stands before the dialect's own path,
/// without trailing slash and without /v1.
struct ServerUrl {
    std::string host;
    std::uint16_t port = 80;
    bool tls = false;
    std::string base_path;
    std::string query{};  ///< sent with each request, "" or with its `?`; it may hold a key and is
                          ///< never shown
    std::string text;     ///< as the user gave it, without credentials and query
};

/// Errors: usage, naming what is wrong (no scheme, https without port is 443, unknown scheme,
/// credentials inside).
base::Result<ServerUrl> parse_server_url(std::string_view text);

using Headers = std::vector<std::pair<std::string, std::string>>;

/// `Connection: close`, Content-Length, X-Request-Id = request.id, plus `extra` (authorization and
/// the user's own). Asks for usage in the stream where the dialect has a way to; sends nothing that
/// some server of the dialect refuses.
std::string request_text(const answer::Request& request, const ServerUrl& url,
                         const Headers& extra);

/// The JSON body alone, as it would be sent (for --dry-run and captures).
std::string request_body(const answer::Request& request);

/// A GET for observing.
std::string get_text(const ServerUrl& url, std::string_view path, const Headers& extra);

}  // namespace fullstop::wire
