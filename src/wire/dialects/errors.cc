// The many shapes of an error: {"error": {...}}, {"error": "text"}, {"object": "error"}, {"detail":
// ...}, bare {"code", "message"}. All words are kept as they came; only the number that looks like
// an HTTP status is read.
#include <algorithm>
#include <array>
#include <charconv>

#include "wire/dialects/dialects.h"
#include "wire/limits.h"

namespace fullstop::wire {
namespace {

std::optional<int> status_in(JsonValue object) {
    for (const auto key : {"http_status_code", "status_code", "status", "code"}) {
        const std::string_view text = object[key].verbatim();
        int status = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), status);
        if (error == std::errc() && end == text.data() + text.size() && status >= 100 &&
            status < 600)
            return status;
    }
    return std::nullopt;
}

std::string_view first_string(JsonValue object, std::initializer_list<std::string_view> keys) {
    for (const auto key : keys)
        if (const auto text = object[key].string(); !text.empty()) return text;
    return {};
}

/// All scalars of an unknown shape, so that nothing it says is lost.
void flatten(JsonValue value, std::string& out) {
    if (out.size() > kMaxErrorTextBytes) return;
    if (const auto text = value.verbatim(); !text.empty()) {
        if (!out.empty()) out += ' ';
        if (!value.key().empty()) out.append(value.key()).append(": ");
        out += text;
    }
    for (const JsonValue member : value) flatten(member, out);
}

answer::ServerError read_error(JsonValue object) {
    answer::ServerError error;
    error.status = status_in(object);
    error.code = object["code"].verbatim();
    error.type = first_string(object, {"type", "error_type", "err_type"});
    error.text = first_string(object, {"message", "msg", "detail", "error", "text"});
    if (error.text.empty()) flatten(object, error.text);
    error.where = answer::ErrorPlace::kStream;
    return error;
}

}  // namespace

std::optional<answer::ServerError> error_of(JsonValue event, bool marked_as_error) {
    if (const JsonValue error = event["error"]; error.is_object() || error.is_array()) {
        answer::ServerError read = read_error(error);
        if (!read.status) read.status = status_in(event);
        return read;
    } else if (error.is_string() && !error.string().empty()) {
        answer::ServerError read = read_error(event);
        read.text = error.string();
        return read;
    }
    if (event["object"].string() == "error") return read_error(event);
    if (event["choices"].present() || event["content"].present() || event["done"].present())
        return std::nullopt;
    const JsonValue detail = event["detail"];
    if (detail.is_object()) return read_error(detail);
    const bool bare =
        event["message"].is_string() &&
        (event["code"].present() || event["type"].present() || event["status"].present());
    if (detail || bare || marked_as_error) return read_error(event);
    return std::nullopt;
}

}  // namespace fullstop::wire
