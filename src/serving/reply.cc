// Boost.JSON objects in the order clients are used to.
#include "serving/reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "base/utf8.h"
#include "serving/limits.h"
#include "serving/request_identity.h"
#include "wire/http/response_text.h"

namespace fullstop::serving {

namespace json = boost::json;

Asker asker_of(const net::ServiceRequest& request, std::string request_id) {
    return {.id = request.id,
            .request_id = std::move(request_id),
            .keep_alive = !wants_close(request),
            .head_only = request.method == "HEAD"};
}

void respond(const Asker& asker, int status, std::string_view type, std::string_view body,
             net::ServiceActions& out, const wire::Headers& more) {
    wire::Headers headers = {{"Connection", asker.keep_alive ? "keep-alive" : "close"},
                             {"X-Request-Id", asker.request_id},
                             {"Server", "fullstop"}};
    headers.insert(headers.end(), more.begin(), more.end());
    std::string bytes = wire::whole_response(status, type, body, headers);
    if (asker.head_only) bytes.resize(bytes.size() - body.size());
    out.emplace_back(net::ServiceSend{asker.id, std::move(bytes)});
    out.emplace_back(net::ServiceClose{
        .id = asker.id, .kind = net::CloseKind::kFin, .keep_alive = asker.keep_alive});
}

void refuse_method(const Asker& asker, std::string_view path, std::string_view methods,
                   net::ServiceActions& out) {
    respond(asker, 405, kJson,
            error_body(fmt::format("{} takes {}", path, methods.substr(0, methods.find(','))),
                       "invalid_request_error", "method_not_allowed"),
            out, {{"Allow", std::string(methods)}});
}

void respond_health(const Asker& asker, bool draining, net::ServiceActions& out) {
    respond(asker, draining ? 503 : 200, kJson,
            draining ? R"({"status":"draining"})" : R"({"status":"ok"})", out);
}

wire::Headers retry_after(base::Duration wait) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
    return {{"Retry-After", std::to_string(std::max<std::int64_t>(1, seconds))}};
}

std::string error_body(std::string_view message, std::string_view type, std::string_view code,
                       std::string_view parameter) {
    json::object error = {{"message", quotable(message)}, {"type", type}, {"code", code}};
    error["param"] = parameter.empty() ? json::value(nullptr) : json::value(quotable(parameter));
    return json::serialize(json::object{{"error", std::move(error)}});
}

std::string quotable(std::string_view text) {
    const std::string_view front = base::front_characters(text, kMaxMessageBytes);
    return base::valid_utf8(front) + (front.size() < text.size() ? "..." : "");
}

}  // namespace fullstop::serving
