// Boost.JSON objects in the order clients are used to.
#include "gateway/ending/error_body.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <utility>

#include "wire/http/response_text.h"

namespace fullstop::gateway {
namespace {

namespace json = boost::json;

json::object stop_object(const End& end) {
    json::object out{{"cause", answer::to_string(end.cause)},
                     {"by", to_string(end.by)},
                     {"detail", serving::quotable(end.detail)}};
    if (end.cut_by) {
        out["limit"] = end.cut_by->limit;
        out["limit_ms"] = base::to_ms(end.cut_by->allowed);
        out["elapsed_ms"] = base::to_ms(end.cut_by->elapsed);
    }
    return out;
}

json::object error_object(const End& end, const AnswerNumbers& numbers) {
    return {{"message", serving::quotable(
                            fmt::format("{}: {}", answer::entry(end.cause).meaning, end.detail))},
            {"type", end.by == By::kGateway ? "gateway_error" : "upstream_error"},
            {"code", answer::to_string(end.cause)},
            {"fullstop", serving::fullstop_object(stop_object(end), numbers)}};
}

}  // namespace

ErrorShape error_shape(std::string_view path) {
    if (path.ends_with("/messages")) return ErrorShape::kMessages;
    return path.ends_with("/responses") ? ErrorShape::kResponses : ErrorShape::kPlain;
}

std::string error_body(const End& end, const AnswerNumbers& numbers, ErrorShape shape) {
    json::object body;
    if (shape == ErrorShape::kMessages) body["type"] = "error";
    body["error"] = error_object(end, numbers);
    return json::serialize(body);
}

std::string error_event(const End& end, const AnswerNumbers& numbers, ErrorShape shape) {
    if (shape != ErrorShape::kResponses)
        return wire::sse_event(error_body(end, numbers, shape),
                               shape == ErrorShape::kMessages ? "error" : "");
    const json::object response = {{"id", numbers.request_id},
                                   {"object", "response"},
                                   {"status", "failed"},
                                   {"error", error_object(end, numbers)},
                                   {"output", json::array()}};
    return wire::sse_event(
        json::serialize(json::object{{"type", "response.failed"}, {"response", response}}),
        "response.failed");
}

bool inside_event(BodyForm form, std::string_view tail) {
    if (tail.empty()) return false;
    if (form == BodyForm::kLines) return tail.back() != '\n';
    return form == BodyForm::kSse && !tail.ends_with("\n\n") && !tail.ends_with("\r\n\r\n") &&
           !tail.ends_with("\r\r");
}

std::string in_band(const End& end, const AnswerNumbers& numbers, ErrorShape shape, BodyForm form,
                    std::string_view tail) {
    const bool open = inside_event(form, tail);
    if (form == BodyForm::kLines)
        return fmt::format("{}{}\n", open ? "\n" : "", error_body(end, numbers, shape));
    const bool line_open = open && tail.back() != '\n' && tail.back() != '\r';
    return fmt::format("{}{}{}", line_open ? "\n" : "", open ? "\n" : "",
                       error_event(end, numbers, shape));
}

}  // namespace fullstop::gateway
