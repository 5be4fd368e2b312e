// Pages first: a browser of somebody who holds a key is no better than another.
#include "serving/access.h"

#include "serving/request_identity.h"

namespace fullstop::serving {
namespace {

/// With a body it is no question after health: nobody without a key has one read.
bool asks_for_health(const net::ServiceRequest& request) {
    const std::string_view length = header(request, "content-length");
    return std::string_view(request.target).substr(0, request.target.find('?')) == "/health" &&
           (length.empty() || length == "0") && !request.headers.contains("transfer-encoding");
}

}  // namespace

std::optional<Refusal> refusal(const net::ServiceRequest& request, const Access& access) {
    if (asks_for_health(request)) return std::nullopt;
    if (auto why = foreign_page(request, access.origins))
        return Refusal{.status = 403, .message = std::move(*why), .code = "foreign_page"};
    if (access.keys.open() || access.keys.client(header(request, "authorization")))
        return std::nullopt;
    return Refusal{.status = 401,
                   .message = "an API key of this server is needed: Authorization: Bearer KEY",
                   .code = "invalid_api_key",
                   .headers = {{"WWW-Authenticate", "Bearer realm=\"fullstop\""}}};
}

std::string client_name(const net::ServiceRequest& request, const Access& access) {
    return access.keys.client(header(request, "authorization")).value_or("");
}

}  // namespace fullstop::serving
