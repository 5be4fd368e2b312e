// Who may ask a server of answers: one decision on the head of a request, before anything of its
// body is read.
#pragma once

#include <optional>
#include <string>

#include "net/service.h"
#include "serving/api_keys.h"
#include "serving/browser_guard.h"
#include "wire/http/request_text.h"

namespace fullstop::serving {

struct Access {
    ApiKeys keys = {};            ///< none: everybody may ask
    AllowedOrigins origins = {};  ///< of browsers' pages, beside the server's own
};

/// A response instead of an answer; its body is an error object of these words.
struct Refusal {
    int status = 0;
    std::string message, code;
    wire::Headers headers = {};
};

/// Absent: it may ask. /health is for everybody who only wants to know whether this lives: load
/// balancers and process managers hold no keys.
std::optional<Refusal> refusal(const net::ServiceRequest& request, const Access& access);
/// The name of its key; "" where there are no keys.
std::string client_name(const net::ServiceRequest& request, const Access& access);

}  // namespace fullstop::serving
