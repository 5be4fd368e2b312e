// fullstop's own capture: JSON lines with the request, the head, the body's bytes as they came, and
// the end.
#include <boost/json.hpp>

#include <algorithm>
#include <string>

#include "base/utf8.h"
#include "wire/answer_reader.h"
#include "wire/captures/base64.h"
#include "wire/captures/capture.h"
#include "wire/captures/capture_forms.h"
#include "wire/http/http_framing.h"
#include "wire/http/request_text.h"
#include "wire/json/json.h"

namespace fullstop::wire {
namespace {

namespace json = boost::json;
using answer::Disconnect;
using answer::Record;
using answer::Transport;

std::string_view string_in(const json::object& object, std::string_view key) {
    const auto* value = object.if_contains(json::string_view(key.data(), key.size()));
    return value && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

std::optional<double> number_in(const json::object& object, std::string_view key) {
    const auto* value = object.if_contains(json::string_view(key.data(), key.size()));
    return value && value->is_number() ? std::optional(value->to_number<double>()) : std::nullopt;
}

std::string one_line(std::string_view text) {
    std::string out(text);
    std::erase_if(out, [](char c) { return c == '\r' || c == '\n'; });
    return out;
}

/// One capture while its lines are read; the reader starts when the first bytes show which form
/// they have.
class OwnCapture {
public:
    explicit OwnCapture(const json::object& first) {
        record_.requested_max_tokens =
            answer::Fact<base::Tokens>::unavailable("the capture does not hold the request");
        const auto* request = first.if_contains("request");
        if (!request || !request->is_object() || !request->get_object().contains("body")) return;
        if (auto asked = read_request(json::serialize(*request))) {
            asked_ = true;
            set_request(record_, std::move(*asked));
        }
        const auto* named = first.if_contains("record");
        if (named && named->is_object()) name(named->get_object());
    }

    /// "" or what is wrong with the line.
    std::string take(const json::object& line) {
        const std::string_view event = string_in(line, "event");
        at_ = base::from_ms(number_in(line, "t_ms").value_or(0));
        if (event == "sent") {
            record_.timeline.sent = at_;
            record_.timeline.started = at_;
        } else if (event == "headers") {
            head_ = head_text(line);
            head_at_ = at_;
        } else if (event == "bytes") {
            return take_bytes(line);
        } else if (event == "end") {
            finish(&line);
        }
        return {};  // events this version does not know are passed over
    }

    Record finished() {
        if (!ended_) finish(nullptr);
        return std::move(record_);
    }

private:
    void name(const json::object& named) {
        record_.request.id = string_in(named, "id");
        record_.request.arm = string_in(named, "arm");
        record_.request.prompt_id = string_in(named, "prompt");
        record_.request.concurrency = static_cast<int>(number_in(named, "concurrency").value_or(1));
        record_.request.repeat = static_cast<int>(number_in(named, "repeat").value_or(0));
    }

    static std::string head_text(const json::object& line) {
        std::string out =
            "HTTP/1.1 " +
            std::to_string(static_cast<int>(number_in(line, "status").value_or(200))) + " " +
            one_line(string_in(line, "reason")) + "\r\n";
        const auto* headers = line.if_contains("headers");
        if (headers && headers->is_object())
            for (const auto& [key, value] : headers->get_object()) {
                const std::string text =
                    value.is_string() ? std::string(value.get_string()) : json::serialize(value);
                out.append(std::string_view(key)).append(": ");
                out.append(one_line(text)).append("\r\n");
            }
        return out + "\r\n";
    }

    std::string take_bytes(const json::object& line) {
        const std::string_view encoded = string_in(line, "data_base64");
        if (!line.contains("data") && !line.contains("data_base64"))
            return "has neither `data` nor `data_base64`";
        const auto decoded = base64_decode(encoded);
        if (!decoded) return "has a `data_base64` that is not base64";
        const std::string bytes = encoded.empty() ? std::string(string_in(line, "data")) : *decoded;
        if (!reader_) begin(bytes);
        body_bytes_ += static_cast<std::int64_t>(bytes.size());
        reader_->bytes(bytes, at_, answer::StampClock::kUserSpace);
        return {};
    }

    void begin(std::string_view first) {
        using Input = AnswerReader::Input;
        Input input = head_.empty() ? Input::kBody : Input::kUnframed;
        const auto head = parse_head(head_);
        const auto encoding = head ? head->headers.find("transfer-encoding")
                                   : std::map<std::string, std::string>::const_iterator();
        const bool chunked = head && encoding != head->headers.end() &&
                             encoding->second.find("chunked") != std::string::npos;
        if ((chunked && starts_with_chunk(first)) || first.starts_with("HTTP/"))
            input = Input::kHttp;
        framed_ = input == Input::kHttp;
        reader_.emplace(record_, input);
        if (!first.starts_with("HTTP/") && !head_.empty())
            reader_->bytes(head_, head_at_, answer::StampClock::kUserSpace);
    }

    void finish(const json::object* line) {
        if (ended_) return;
        ended_ = true;
        if (!reader_) begin({});
        const auto stated =
            line ? answer::parse_transport(string_in(*line, "transport")) : std::nullopt;
        reader_->end({kind_of(stated)}, at_);
        if (!asked_)
            if (const auto dialect = reader_->dialect()) record_.request.api = *dialect;
        if (stated && !(framed_ && *stated == Transport::kClean)) record_.end.transport = *stated;
        record_.disconnect = disconnect_of(record_.end.transport);
        if (line) restore(*line);
        if (!line) record_.timeline.ended.reset();
    }

    static StreamEnd::Kind kind_of(std::optional<Transport> transport) {
        if (!transport) return StreamEnd::Kind::kUnknown;
        switch (*transport) {
            case Transport::kClean: return StreamEnd::Kind::kFin;
            case Transport::kTimedOut: return StreamEnd::Kind::kTimedOut;
            case Transport::kClosedByUs: return StreamEnd::Kind::kClosedByUs;
            // Without its framing a cut body must not look whole; the stated word replaces this one
            // afterwards.
            case Transport::kTruncated:
            case Transport::kReset:
            case Transport::kRefused: return StreamEnd::Kind::kRst;
            case Transport::kUnknown: break;
        }
        return StreamEnd::Kind::kUnknown;
    }

    Disconnect disconnect_of(Transport transport) const {
        switch (transport) {
            case Transport::kClean:
                return {Disconnect::By::kNone, Disconnect::Kind::kNone, body_bytes_};
            case Transport::kTruncated:
                return {Disconnect::By::kPeer, Disconnect::Kind::kFin, body_bytes_};
            case Transport::kReset:
                return {Disconnect::By::kPeer, Disconnect::Kind::kRst, body_bytes_};
            case Transport::kTimedOut:
            case Transport::kClosedByUs:
                return {Disconnect::By::kUs, Disconnect::Kind::kFin, body_bytes_};
            case Transport::kRefused:
            case Transport::kUnknown: break;
        }
        return {Disconnect::By::kUnknown, Disconnect::Kind::kNone, body_bytes_};
    }

    /// Facts that only our own writer adds.
    void restore(const json::object& line) {
        if (const auto framing = answer::parse_framing(string_in(line, "framing")))
            record_.framing = *framing;
        if (const auto by = answer::parse_disconnect_by(string_in(line, "by")))
            record_.disconnect.by = *by;
        if (const auto kind = answer::parse_disconnect_kind(string_in(line, "kind")))
            record_.disconnect.kind = *kind;
        if (const auto at = number_in(line, "at_byte"))
            record_.disconnect.at_byte = static_cast<std::int64_t>(*at);
        if (const auto* cut = line.if_contains("capture_truncated"))
            record_.capture.truncated = cut->is_bool() && cut->get_bool();
    }

    Record record_;
    std::optional<AnswerReader> reader_;
    std::string head_;
    base::Duration head_at_{}, at_{};
    std::int64_t body_bytes_ = 0;
    bool framed_ = false, asked_ = false, ended_ = false;
};

std::optional<json::object> object_of(std::string_view line) {
    boost::system::error_code error;
    json::value value = json::parse(json::string_view(line.data(), line.size()), error);
    if (error || !value.is_object()) return std::nullopt;
    return std::move(value.get_object());
}

std::string_view next_line(std::string_view& text) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

bool is_blank(std::string_view line) {
    return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Writing
// -------------------------------------------------------------------------------------------------

/// Heads and names may hold any bytes, JSON may not: what is no UTF-8 becomes U+FFFD.
void add_line(std::string& out, const json::object& line) {
    out.append(base::valid_utf8(json::serialize(line))).append("\n");
}

json::object first_line(const Record& record, std::string_view url) {
    const answer::Request& request = record.request;
    boost::system::error_code error;
    json::object out{{"fullstop_capture", 1}};
    out["request"] = {{"method", "POST"},
                      {"url", json::string(url)},
                      {"body", json::parse(request_body(request), error)}};
    out["record"] = {{"id", request.id},
                     {"arm", request.arm},
                     {"concurrency", request.concurrency},
                     {"prompt", request.prompt_id},
                     {"repeat", request.repeat}};
    return out;
}

json::object headers_line(const Record& record, double t_ms) {
    json::object headers;
    for (const auto& [name, value] : record.headers) headers[name] = value;
    json::object line{{"t_ms", t_ms},
                      {"event", "headers"},
                      {"status", *record.status},
                      {"headers", std::move(headers)}};
    // Where the body says nothing, the reason phrase is the error's text.
    const std::string_view bytes = record.capture.bytes;
    if (const auto head = parse_head(bytes.substr(0, bytes.find("\r\n\r\n") + 4));
        head && !head->phrase.empty() && *record.status >= 400)
        line["reason"] = head->phrase;
    return line;
}

void add_bytes(std::string& out, double t_ms, const std::string& bytes) {
    if (bytes.empty()) return;
    json::object line{{"t_ms", t_ms}, {"event", "bytes"}};
    if (is_utf8(bytes))
        line["data"] = bytes;
    else
        line["data_base64"] = base64_encode(bytes);
    add_line(out, line);
}

/// The body's bytes of each read, framing removed.
void add_reads(std::string& out, const Record& record, base::Duration origin) {
    HttpFraming framing;
    std::size_t from = 0;
    auto arrivals = record.capture.arrivals;
    if (arrivals.empty())
        arrivals.push_back({origin, record.capture.bytes.size()});  // a capture without moments
    for (const auto& arrival : arrivals) {
        std::string_view read =
            std::string_view(record.capture.bytes).substr(from, arrival.end - from);
        from = arrival.end;
        std::string body;
        if (record.capture.bytes.starts_with("HTTP/"))
            while (!read.empty() && !framing.complete()) body += framing.next(read);
        else
            body = read;
        add_bytes(out, base::to_ms(arrival.at - origin), body);
    }
}

json::object end_line(const Record& record, double t_ms) {
    json::object line{
        {"t_ms", t_ms}, {"event", "end"}, {"transport", answer::to_string(record.end.transport)}};
    line["framing"] = answer::to_string(record.framing);
    line["by"] = answer::to_string(record.disconnect.by);
    line["kind"] = answer::to_string(record.disconnect.kind);
    line["at_byte"] = record.disconnect.at_byte;
    if (record.capture.truncated) line["capture_truncated"] = true;
    return line;
}

}  // namespace

bool is_own_capture(std::string_view file) {
    const auto first = object_of(next_line(file));
    return first && first->contains("fullstop_capture");
}

base::Result<std::vector<Record>> read_own_captures(std::string_view file) {
    std::vector<Record> out;
    std::optional<OwnCapture> current;
    for (int number = 1; !file.empty(); ++number) {
        const bool whole = file.find('\n') != std::string_view::npos;
        const std::string_view text = next_line(file);
        if (is_blank(text)) continue;
        const auto line = object_of(text);
        // A writer that died leaves half a last line: what came before it is still worth judging.
        if (!line && !whole) break;
        if (!line)
            return base::usage_error("Line " + std::to_string(number) +
                                     " of the capture is not a JSON object.");
        if (line->contains("fullstop_capture")) {
            if (current) out.push_back(current->finished());
            current.emplace(*line);
            continue;
        }
        const std::string wrong = current ? current->take(*line) : std::string();
        if (!wrong.empty())
            return base::usage_error("Line " + std::to_string(number) + " of the capture " + wrong +
                                     ".");
    }
    if (current) out.push_back(current->finished());
    return out;
}

std::string write_capture(const Record& record, std::string_view url) {
    const auto& timeline = record.timeline;
    const auto& arrivals = record.capture.arrivals;
    const base::Duration origin = timeline.sent      ? *timeline.sent
                                  : timeline.started ? *timeline.started
                                  : arrivals.empty() ? base::Duration{}
                                                     : arrivals.front().at;
    const auto since = [&](const std::optional<base::Duration>& at) {
        return at ? base::to_ms(*at - origin) : 0.0;
    };
    std::string out;
    add_line(out, first_line(record, url));
    if (timeline.sent) add_line(out, {{"t_ms", 0.0}, {"event", "sent"}});
    if (record.status) add_line(out, headers_line(record, since(timeline.headers)));
    add_reads(out, record, origin);
    add_line(out, end_line(record, since(timeline.ended)));
    return out;
}

}  // namespace fullstop::wire
