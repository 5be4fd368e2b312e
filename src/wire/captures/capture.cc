// Recognises a file and cuts it into responses; each is then read by the one AnswerReader.
#include "wire/captures/capture.h"

#include <algorithm>
#include <optional>
#include <string>

#include "wire/answer_reader.h"
#include "wire/captures/capture_forms.h"
#include "wire/http/http_framing.h"
#include "wire/limits.h"

namespace fullstop::wire {
namespace {

using answer::Record;
using Input = AnswerReader::Input;

Record read(std::string_view bytes, Input input) {
    Record record;
    AnswerReader reader(record, input);
    reader.bytes(bytes, {}, answer::StampClock::kUserSpace);
    reader.end({StreamEnd::Kind::kUnknown}, {});
    record.requested_max_tokens =
        answer::Fact<base::Tokens>::unavailable("the capture does not hold the request");
    if (const auto dialect = reader.dialect()) record.request.api = *dialect;
    forget_moments(record);
    return record;
}

/// Offset after the head that starts at the front; npos when it does not end.
std::size_t head_size(std::string_view text) {
    const auto unix_end = text.find("\n\n"), wire_end = text.find("\n\r\n");
    if (unix_end == std::string_view::npos && wire_end == std::string_view::npos)
        return std::string_view::npos;
    return unix_end < wire_end ? unix_end + 2 : wire_end + 3;
}

/// Whether a status line begins at `at`.
bool starts_head(std::string_view file, std::size_t at) {
    const std::string_view text = file.substr(at);
    return text.starts_with("HTTP/") && text.find('\n') != std::string_view::npos &&
           parse_head(text.substr(0, text.find('\n'))).has_value();
}

/// Offset of the next response after `from`: a status line at the start of a line, or right behind
/// a JSON body that ended without a line end. Inside JSON and SSE no raw line can begin like that.
std::size_t next_head(std::string_view file, std::size_t from) {
    for (auto at = file.find("HTTP/", from); at != std::string_view::npos;
         at = file.find("HTTP/", at + 1))
        if ((at == 0 || file[at - 1] == '\n' || file[at - 1] == '}') && starts_head(file, at))
            return at;
    return file.size();
}

/// Responses that curl prints on the way to the answer: 100 Continue, redirects followed, a proxy's
/// CONNECT.
bool is_on_the_way(const ResponseHead& head, std::string_view body) {
    const bool empty = body.find_first_not_of("\r\n") == std::string_view::npos;
    const bool redirect =
        head.status >= 300 && head.status < 400 && head.headers.contains("location");
    return head.status < 200 || redirect ||
           (empty && head.status == 200 &&
            head.phrase.find("onnection established") != std::string::npos);
}

std::vector<Record> read_responses(std::string_view file) {
    std::vector<Record> out;
    for (std::size_t at = 0; at < file.size();) {
        const std::size_t end = next_head(file, at + 1);
        const std::string_view slice = file.substr(at, end - at);
        const std::size_t body_at = std::min(head_size(slice), slice.size());
        const auto head = parse_head(slice.substr(0, body_at));
        const bool skip = head && end < file.size() && is_on_the_way(*head, slice.substr(body_at));
        if (!skip) out.push_back(read_response(slice));
        at = end;
    }
    return out;
}

/// How a bare body that is no event stream and no JSON may still be an answer's failure: a page or
/// a line of a proxy.
bool is_plausible_page(std::string_view body) {
    if (body.find('\0') != std::string_view::npos) return false;
    return body.front() == '<' || body.size() <= kMaxErrorTextBytes;
}

std::string_view skip_space(std::string_view text) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
    return text;
}

}  // namespace

void forget_moments(Record& record) {
    record.timeline = {};
    record.capture.arrivals.clear();
}

Record read_response(std::string_view raw_http) {
    const std::size_t size = head_size(raw_http);
    const auto head = parse_head(raw_http.substr(0, size));
    if (!head || size == std::string_view::npos) return read(raw_http, Input::kHttp);
    const std::string_view body = raw_http.substr(size);
    const auto header = [&](const char* name) {
        return head->headers.contains(name) ? head->headers.at(name) : std::string();
    };
    if (header("transfer-encoding").find("chunked") != std::string::npos) {
        const bool cut_size_line =
            !body.empty() &&
            body.find_first_not_of("0123456789abcdefABCDEF\r") == std::string_view::npos;
        return read(raw_http,
                    starts_with_chunk(body) || cut_size_line ? Input::kHttp : Input::kUnframed);
    }
    // A tool that unpacked the body left the length of the packed one behind.
    const bool unpacked =
        !header("content-encoding").empty() && header("content-encoding") != "identity";
    return read(raw_http, unpacked ? Input::kUnframed : Input::kHttp);
}

Record read_body(std::string_view body) { return read(body, Input::kBody); }

base::Result<std::vector<Record>> read_capture(std::string_view file, std::string_view request) {
    std::optional<answer::Request> asked;
    if (!request.empty()) {
        auto parsed = read_request(request);
        if (!parsed) return std::unexpected(parsed.error());
        asked = std::move(*parsed);
    }
    const std::string_view start = skip_space(file);
    if (start.empty())
        return base::usage_error("The capture is empty.", "Record again with `curl --raw -i -N`.");
    std::vector<Record> records;
    if (is_own_capture(start)) {
        auto read = read_own_captures(file);
        if (!read) return read;
        records = std::move(*read);
    } else if (is_har(start)) {
        auto read = read_har(start);
        if (!read) return read;
        records = std::move(*read);
    } else if (starts_head(start, 0)) {
        records = read_responses(start);
    } else {
        Record record = read_body(file);
        const bool nothing_read = record.text_events == 0 && record.comments == 0 &&
                                  record.unread_events > 0 && record.server_errors.size() <= 1;
        if (nothing_read && !is_plausible_page(start))
            return base::usage_error(
                "This is no capture of an answer: neither an HTTP response nor SSE, NDJSON, JSON, "
                "HAR or fullstop's own JSONL.",
                "Record one with `curl --raw -i -N`.");
        records.push_back(std::move(record));
    }
    for (Record& record : records)
        if (asked && record.request.messages.empty() && !record.requested_max_tokens)
            set_request(record, *asked);
    return records;
}

}  // namespace fullstop::wire
