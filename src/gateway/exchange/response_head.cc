// Works on the raw lines, because joining repeated fields into one would break Set-Cookie.
#include "gateway/exchange/response_head.h"

#include <algorithm>

#include "gateway/request/request_head.h"

namespace fullstop::gateway {
namespace {

std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string_view value_of(const wire::ResponseHead& head, const char* name) {
    const auto found = head.headers.find(name);
    return found == head.headers.end() ? std::string_view() : std::string_view(found->second);
}

/// Drops interim heads (1xx): each ends with a blank line, and the final one is what is left.
std::string_view final_head(std::string_view raw) {
    while (true) {
        const auto end = raw.find("\n\r\n"), bare = raw.find("\n\n");
        const auto blank = std::min(end, bare);
        if (blank == std::string_view::npos) return raw;
        const std::size_t next = blank + (end < bare ? 3 : 2);
        if (next >= raw.size()) return raw;
        raw.remove_prefix(next);
    }
}

/// What a field may be called (RFC 9110, 5.6.2); a line of another name is none, and readers differ
/// in what they make of it.
bool is_token(std::string_view name) {
    return !name.empty() && std::ranges::all_of(name, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               std::string_view("!#$%&'*+-.^_`|~").contains(c);
    });
}

}  // namespace

std::string_view content_encoding(const wire::ResponseHead& head) {
    const std::string_view coding = value_of(head, "content-encoding");
    return lower(coding) == "identity" ? std::string_view() : coding;
}

bool holds_control_bytes(std::string_view raw_head) {
    for (std::size_t at = 0;
         (at = raw_head.find_first_of(std::string_view("\0\r", 2), at)) != std::string_view::npos;
         ++at)
        if (raw_head[at] == '\0' || at + 1 == raw_head.size() || raw_head[at + 1] != '\n')
            return true;
    return false;
}

BodyForm announced_form(const wire::ResponseHead& head) {
    if (is_encoded(head)) return BodyForm::kOther;
    const std::string type = lower(value_of(head, "content-type"));
    if (type.find("event-stream") != std::string::npos) return BodyForm::kSse;
    for (const auto* lines : {"ndjson", "jsonl", "json-seq", "stream+json"})
        if (type.find(lines) != std::string::npos) return BodyForm::kLines;
    return type.find("json") != std::string::npos ? BodyForm::kJson : BodyForm::kOther;
}

ClientFraming client_framing(const wire::ResponseHead& head, answer::Framing upstream,
                             bool head_only) {
    if (head_only || head.status == 204 || head.status == 304) return ClientFraming::kNone;
    const BodyForm form = announced_form(head);
    const bool stream = form == BodyForm::kSse || form == BodyForm::kLines;
    switch (upstream) {
        case answer::Framing::kChunked: return ClientFraming::kChunked;
        case answer::Framing::kContentLength:
            return stream ? ClientFraming::kChunked : ClientFraming::kSized;
        default:
            return stream || form == BodyForm::kJson ? ClientFraming::kChunked
                                                     : ClientFraming::kUntilClose;
    }
}

std::string client_head(std::string_view raw, const wire::ResponseHead& head, ClientFraming framing,
                        const wire::Headers& ours) {
    std::string out = "HTTP/1.1 " + std::to_string(head.status) + " " + head.phrase + "\r\n";
    std::string_view rest = final_head(raw);
    rest.remove_prefix(std::min(rest.size(), rest.find('\n') + 1));
    const std::string_view connection = value_of(head, "connection");
    // A 204 has no length (RFC 9110, 8.6); one to HEAD, and a 304, may name that of another
    // response.
    const bool keep_length =
        framing == ClientFraming::kSized || (framing == ClientFraming::kNone && head.status != 204);
    while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(rest.size(), end + 1));
        const auto colon = line.find(':');
        if (colon == std::string_view::npos || line.front() == ' ' || line.front() == '\t')
            continue;
        const std::string name = lower(trim(line.substr(0, colon)));
        const bool replaced =
            std::ranges::any_of(ours, [&](const auto& each) { return lower(each.first) == name; });
        if (replaced || !is_token(name) || is_hop_by_hop(name, connection) ||
            (name == "content-length" && !keep_length))
            continue;
        out.append(trim(line.substr(0, colon)))
            .append(": ")
            .append(trim(line.substr(colon + 1)))
            .append("\r\n");
    }
    for (const auto& [name, value] : ours)
        out.append(name).append(": ").append(value).append("\r\n");
    if (framing == ClientFraming::kChunked) out += "Transfer-Encoding: chunked\r\n";
    if (framing == ClientFraming::kUntilClose) out += "Connection: close\r\n";
    return out + "\r\n";
}

bool untrusted_length(const wire::ResponseHead& head) {
    if (!value_of(head, "transfer-encoding").empty())
        return false;  // chunked wins, and the length is not passed on
    return value_of(head, "content-length").find_first_not_of("0123456789") !=
           std::string_view::npos;
}

bool stays_open(const wire::ResponseHead& head) {
    const bool ambiguous =
        !value_of(head, "transfer-encoding").empty() && !value_of(head, "content-length").empty();
    return head.version == "1.1" && !ambiguous &&
           lower(value_of(head, "connection")).find("close") == std::string::npos;
}

}  // namespace fullstop::gateway
