// What the model would have done is only known of answers that ended by themselves. One that ended
// at its limit is given a longer natural length and the same limit; one that was cut ends where it
// was cut, and a note says so.
#include "simulator/capacity/serving_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <optional>
#include <tuple>

#include "report/json/document.h"
#include "report/json/run_json.h"
#include "report/text.h"

namespace fullstop::simulator {
namespace {

namespace json = boost::json;
using base::Tokens;

constexpr const char* kForms =
    "a trace is a fullstop.run/1 document (probe --json), or lines of {\"at_ms\": 0, "
    "\"prompt_tokens\": 100, \"output_tokens\": 250}";

base::Result<double> number_of(const json::object& object, const char* field, double low,
                               double high, std::string_view place) {
    const json::value* value = object.if_contains(field);
    if (value == nullptr)
        return base::usage_error(fmt::format("{}: {} is missing", place, field), kForms);
    const double number = value->is_number() ? value->to_number<double>() : std::nan("");
    if (!(number >= low && number <= high))
        return base::usage_error(
            fmt::format("{}: {} is a number from {} to {}", place, field, low, high), kForms);
    return number;
}

base::Result<PlannedRequest> request_of(std::string_view line, std::string_view place) {
    json::error_code error;
    const json::value value = json::parse(json::string_view(line.data(), line.size()), error);
    if (error || !value.is_object())
        return base::usage_error(fmt::format("{} is not a JSON object", place), kForms);
    const json::object& object = value.get_object();
    const auto at = number_of(object, "at_ms", 0, 1e12, place);
    if (!at) return std::unexpected(at.error());
    PlannedRequest request{.at = base::from_ms(*at),
                           .prompt = {},
                           .natural = {},
                           .max_tokens = {},
                           .patience = {},
                           .client = {}};
    const auto prompt =
        number_of(object, "prompt_tokens", 1, static_cast<double>(kMaxRequestTokens), place);
    if (!prompt) return std::unexpected(prompt.error());
    const auto output =
        number_of(object, "output_tokens", 0, static_cast<double>(kMaxRequestTokens), place);
    if (!output) return std::unexpected(output.error());
    request.prompt = Tokens{std::llround(*prompt)};
    request.natural = Tokens{std::llround(*output)};
    const auto optional = [&](const char* field, double low,
                              double high) -> base::Result<std::optional<Tokens>> {
        const json::value* value = object.if_contains(field);
        if (value == nullptr || value->is_null()) return std::nullopt;
        const auto number = number_of(object, field, low, high, place);
        if (!number) return std::unexpected(number.error());
        return Tokens{std::llround(*number)};
    };
    const auto limit = optional("max_tokens", 1, static_cast<double>(kMaxRequestTokens));
    if (!limit) return std::unexpected(limit.error());
    request.max_tokens = *limit;
    const auto shared = optional("shared_tokens", 0, *prompt);
    if (!shared) return std::unexpected(shared.error());
    request.shared = shared->value_or(Tokens{});
    return request;
}

/// Calls `see(line, number)` for each line that is not empty, until it says false.
template <class See>
void each_line(std::string_view text, See see) {
    for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        begin = end + 1;
        if (line.find_first_not_of(" \t\r") != std::string_view::npos && !see(line, number)) return;
    }
}

base::Result<Trace> read_lines(std::string_view text, std::string_view name) {
    Trace trace;
    std::optional<base::Error> wrong;
    each_line(text, [&](std::string_view line, std::size_t number) {
        auto request = request_of(line, fmt::format("{}, line {}", name, number));
        if (!request) wrong = request.error();
        if (request) trace.load.requests.push_back(*request);
        return !wrong && trace.load.requests.size() <= kMaxRequests;
    });
    if (wrong) return std::unexpected(*wrong);
    return trace;
}

/// Absent: a number that the replay needs was not recorded.
std::optional<PlannedRequest> request_of(const report::Row& row) {
    const auto output = row.record.length_tokens();
    if (!row.started_ms || !row.record.prompt_tokens.value ||
        row.record.prompt_tokens.value->count < 1 || !output)
        return std::nullopt;
    PlannedRequest request{.at = base::from_ms(*row.started_ms),
                           .prompt = *row.record.prompt_tokens.value,
                           .natural = Tokens{*output},
                           .max_tokens = {},
                           .patience = {},
                           .client = {}};
    if (row.record.requested_max_tokens.value)
        request.max_tokens = *row.record.requested_max_tokens.value;
    if (row.finding.cause == answer::Cause::kTokenLimit) {
        request.max_tokens = request.natural;
        request.natural += Tokens{1};
    }
    return request;
}

base::Result<Trace> read_run(std::string_view text, std::string_view name) {
    const auto document = report::read_run_document(text, name);
    if (!document) return std::unexpected(document.error());
    Trace trace;
    std::int64_t unknown = 0, cut = 0;
    for (const report::Row& row : document->rows) {
        if (row.record.request.arm != "deployed") continue;  // the control arm asks the same again
        auto request = request_of(row);
        unknown += request ? 0 : 1;
        if (!request) continue;
        using enum answer::Cause;
        const answer::Cause cause = row.finding.cause;
        cut += cause != kNaturalEnd && cause != kTokenLimit && cause != kStopString ? 1 : 0;
        trace.load.requests.push_back(*request);
    }
    if (unknown > 0)
        trace.notes.push_back(fmt::format(
            "{} left out: the record lacks its start, its prompt tokens or its output tokens",
            report::counted(unknown, "answer")));
    if (cut > 0)
        trace.notes.push_back(
            fmt::format("{} cut when recorded; where the model would have ended is not known, so "
                        "they end there",
                        report::counted(cut, "answer was")));
    return trace;
}

bool is_line_of_requests(std::string_view text) {
    bool is = false;
    each_line(text, [&](std::string_view line, std::size_t) {
        json::error_code error;
        const json::value value = json::parse(json::string_view(line.data(), line.size()), error);
        is = !error && value.is_object() && !value.get_object().contains("schema");
        return false;
    });
    return is;
}

}  // namespace

base::Result<Trace> read_trace(std::string_view text, std::string_view name) {
    const bool lines = is_line_of_requests(text);
    if (!lines && text.find(report::kRunSchema) == std::string_view::npos)
        return base::usage_error(
            fmt::format("{}: the first line is not a JSON object, nor is this a {} document", name,
                        report::kRunSchema),
            kForms);
    auto trace = lines ? read_lines(text, name) : read_run(text, name);
    if (!trace) return trace;
    auto& requests = trace->load.requests;
    if (requests.empty())
        return base::usage_error(fmt::format("{} holds no request that can be asked again", name),
                                 kForms);
    if (requests.size() > kMaxRequests)
        return base::usage_error(fmt::format("{} holds more than {} requests", name, kMaxRequests),
                                 "cut it into parts");
    std::ranges::sort(requests, {}, [](const PlannedRequest& r) {
        return std::tuple(r.at, r.prompt, r.natural, r.max_tokens);
    });
    const base::Duration first = requests.front().at;
    for (PlannedRequest& request : requests) request.at -= first;
    return trace;
}

}  // namespace fullstop::simulator
