// Boost.JSON objects in the order clients are used to.
#include "gateway/ending/error_body.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <utility>

#include "base/utf8.h"
#include "gateway/limits.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {
namespace {

namespace json = boost::json;

/// What others wrote may stand in it: bounded, and characters alone.
std::string told(std::string_view words) {
    return base::valid_utf8(base::front_characters(words, kMaxMessageBytes));
}

template <class Number>
json::value number(const std::optional<Number>& value) {
    if (!value) return nullptr;
    return *value;
}

json::object stop_object(const End& end) {
    json::object out{{"cause", answer::to_string(end.cause)},
                     {"by", to_string(end.by)},
                     {"detail", told(end.detail)}};
    if (end.cut_by) {
        out["limit"] = end.cut_by->limit;
        out["limit_ms"] = base::to_ms(end.cut_by->allowed);
        out["elapsed_ms"] = base::to_ms(end.cut_by->elapsed);
    }
    return out;
}

json::object fullstop_object(const End& end, const AnswerNumbers& n) {
    return {{"request_id", n.request_id},
            {"stop", stop_object(end)},
            {"requested_max_tokens", number(n.asked_max_tokens)},
            {"effective_max_tokens", number(n.max_tokens)},
            {"prompt_tokens", number(n.prompt_tokens)},
            {"cached_tokens", number(n.cached_tokens)},
            {"output_tokens", number(n.output_tokens)},
            {"queue_ms", number(n.queue_ms)},
            {"ttft_ms", number(n.ttft_ms)},
            {"paused_ms", nullptr},
            {"preemptions", nullptr},
            {"kv_bytes_peak", nullptr},
            {"deadline_ms", number(n.deadline_ms)},
            {"slo", {{"ttft_met", nullptr}, {"itl_met", nullptr}}}};
}

json::object error_object(const End& end, const AnswerNumbers& numbers) {
    return {{"message", told(fmt::format("{}: {}", answer::entry(end.cause).meaning, end.detail))},
            {"type", end.by == By::kGateway ? "gateway_error" : "upstream_error"},
            {"code", answer::to_string(end.cause)},
            {"fullstop", fullstop_object(end, numbers)}};
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

std::string error_body(std::string_view message, std::string_view type, std::string_view code) {
    return json::serialize(
        json::object{{"error", {{"message", told(message)}, {"type", type}, {"code", code}}}});
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
