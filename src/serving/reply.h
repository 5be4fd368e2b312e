// Whole responses of a server of answers: its own pages, refusals, and answers that are not
// streamed.
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "net/service.h"
#include "wire/http/request_text.h"

namespace fullstop::serving {

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kPrometheus = "text/plain; version=0.0.4";

/// Whom a response is for.
struct Asker {
    net::ConnectionId id = 0;
    std::string request_id;
    bool keep_alive = true;
    bool head_only = false;   ///< HEAD: no body goes out
    std::string client = {};  ///< the name of its API key
};
Asker asker_of(const net::ServiceRequest& request, std::string request_id);

void respond(const Asker& asker, int status, std::string_view type, std::string_view body,
             net::ServiceActions& out, const wire::Headers& more = {});
/// 405 with the methods that `path` takes ("GET, HEAD").
void refuse_method(const Asker& asker, std::string_view path, std::string_view methods,
                   net::ServiceActions& out);
/// /health: 200, or 503 while the server drains.
void respond_health(const Asker& asker, bool draining, net::ServiceActions& out);

/// Whole seconds, one at least: clients take 0 for "now".
wire::Headers retry_after(base::Duration wait);

/// The error object of OpenAI's interface as a body. `parameter` "": none is to blame.
std::string error_body(std::string_view message, std::string_view type, std::string_view code,
                       std::string_view parameter = {});
/// Text that may repeat what others wrote, as it stands in an error: bounded, and UTF-8.
std::string quotable(std::string_view text);

}  // namespace fullstop::serving
