// How urgent an answer is and what becomes of it when its time is over.

#include "engine/openai/request_readers.h"
#include "schema/integer.h"

#include <fmt/format.h>

#include <chrono>

#include "engine/limits.h"

namespace fullstop::engine {

namespace json = boost::json;

namespace {

std::string read_priority(const json::value& value, Submission& out) {
    const auto named = value.is_string()
                           ? serving::priority_of(std::string_view(value.get_string()))
                           : std::nullopt;
    if (!named) return ".priority is interactive, normal or batch";
    out.priority = *named;
    return {};
}

std::string read_deadline(const json::value& value, Submission& out) {
    const auto given = schema::integer(value);
    const std::int64_t most =
        std::chrono::duration_cast<std::chrono::milliseconds>(kMaxDeadline).count();
    if (!given || *given < 1 || *given > most)
        return fmt::format(".deadline_ms is a whole number from 1 to {}", most);
    out.deadline = std::chrono::milliseconds(*given);
    return {};
}

std::string read_on_deadline(const json::value& value, Submission& out) {
    if (value != "error" && value != "partial") return ".on_deadline is error or partial";
    out.on_deadline = value == "partial" ? OnDeadline::kPartial : OnDeadline::kError;
    return {};
}

}  // namespace

std::string read_fullstop(const json::value& value, CompletionRequest& out) {
    if (!value.is_object()) return "is an object";
    for (const auto& [key, member] : value.get_object()) {
        if (member.is_null()) continue;
        std::string wrong;
        if (key == "priority")
            wrong = read_priority(member, out.submission);
        else if (key == "deadline_ms")
            wrong = read_deadline(member, out.submission);
        else if (key == "on_deadline")
            wrong = read_on_deadline(member, out.submission);
        else
            wrong = fmt::format(".{} is not honoured by this server", std::string_view(key));
        if (!wrong.empty()) return wrong;
    }
    if (out.submission.on_deadline && !out.submission.deadline)
        return ".on_deadline says what to do at a deadline: give deadline_ms";
    return {};
}

}  // namespace fullstop::engine
