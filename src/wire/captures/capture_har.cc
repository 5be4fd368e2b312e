// HAR 1.2 as browsers and proxies write it. It knows when an exchange began and ended, not when
// each event came.
#include <boost/json.hpp>

#include <algorithm>
#include <string>

#include "wire/answer_reader.h"
#include "wire/captures/base64.h"
#include "wire/captures/capture.h"
#include "wire/captures/capture_forms.h"

namespace fullstop::wire {
namespace {

namespace json = boost::json;
using answer::Record;

const json::object* object_in(const json::object& parent, const char* key) {
    const auto* value = parent.if_contains(key);
    return value ? value->if_object() : nullptr;
}

std::string string_in(const json::object* object, const char* key) {
    const auto* value = object ? object->if_contains(key) : nullptr;
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

double number_in(const json::object* object, const char* key) {
    const auto* value = object ? object->if_contains(key) : nullptr;
    const double number = value && value->is_number() ? value->to_number<double>() : 0;
    return number > 0 ? number : 0;  // HAR writes -1 for "does not apply"
}

const json::array* entries_of(const json::value& har) {
    const auto* root = har.if_object();
    const auto* log = root ? object_in(*root, "log") : nullptr;
    const auto* entries = log ? log->if_contains("entries") : nullptr;
    return entries ? entries->if_array() : nullptr;
}

/// The request when it asked for an answer.
std::optional<answer::Request> request_of(const json::object& entry) {
    const auto* request = object_in(entry, "request");
    if (!request || string_in(request, "method") != "POST") return std::nullopt;
    const auto* post = object_in(*request, "postData");
    auto read = read_request(string_in(post, "text"), string_in(request, "url"));
    if (!read || read->messages.empty()) return std::nullopt;
    return std::move(*read);
}

std::string head_text(const json::object& response) {
    std::string out = "HTTP/1.1 " +
                      std::to_string(static_cast<int>(number_in(&response, "status"))) + " " +
                      string_in(&response, "statusText") + "\r\n";
    const auto* headers = response.if_contains("headers");
    if (headers && headers->is_array())
        for (const json::value& item : headers->get_array()) {
            const std::string name = string_in(item.if_object(), "name");
            if (!name.empty() && name.front() != ':')
                out += name + ": " + string_in(item.if_object(), "value") + "\r\n";
        }
    return out + "\r\n";
}

std::string body_text(const json::object& response) {
    const auto* content = object_in(response, "content");
    std::string text = string_in(content, "text");
    if (string_in(content, "encoding") != "base64") return text;
    return base64_decode(text).value_or(text);
}

Record read_entry(const json::object& entry, answer::Request request) {
    Record record;
    set_request(record, std::move(request));
    const auto* timings = object_in(entry, "timings");
    const auto at = [](double ms) { return base::from_ms(ms); };
    const double sent = number_in(timings, "blocked") + number_in(timings, "dns") +
                        number_in(timings, "connect") + number_in(timings, "send");
    const double headers = sent + number_in(timings, "wait");
    const double ended = std::max(number_in(&entry, "time"), headers);
    AnswerReader reader(record, AnswerReader::Input::kUnframed);
    const auto* response = object_in(entry, "response");
    const bool answered = response && number_in(response, "status") >= 100;
    if (answered) {
        reader.bytes(head_text(*response), at(headers), answer::StampClock::kUserSpace);
        reader.bytes(body_text(*response), at(ended), answer::StampClock::kUserSpace);
    }
    reader.end({StreamEnd::Kind::kUnknown}, at(ended));
    forget_moments(record);
    record.timeline.started = base::Duration{};
    record.timeline.sent = at(sent);
    if (answered) record.timeline.headers = at(headers);
    record.timeline.ended = at(ended);
    return record;
}

}  // namespace

bool is_har(std::string_view file) {
    boost::system::error_code error;
    if (file.empty() || file.front() != '{' || file.find("\"entries\"") == std::string_view::npos)
        return false;
    const json::value har = json::parse(json::string_view(file.data(), file.size()), error);
    return !error && entries_of(har);
}

base::Result<std::vector<Record>> read_har(std::string_view file) {
    boost::system::error_code error;
    const json::value har = json::parse(json::string_view(file.data(), file.size()), error);
    const json::array* entries = error ? nullptr : entries_of(har);
    std::vector<Record> out;
    if (entries)
        for (const json::value& item : *entries)
            if (const auto* entry = item.if_object())
                if (auto request = request_of(*entry))
                    out.push_back(read_entry(*entry, std::move(*request)));
    if (out.empty())
        return base::usage_error(
            "The HAR file holds no request for an answer (a POST with `messages`, `prompt` or "
            "`inputs`).",
            "Record again while the answer is being written, with the request bodies included.");
    return out;
}

}  // namespace fullstop::wire
