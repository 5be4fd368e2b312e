// The head is held until it is whole and loses what no longer holds; the body goes on, without its
// chunk framing, or not at all.
#include "adapters/asio/server/response_fitting.h"

#include <algorithm>
#include <cctype>

namespace fullstop::adapters::asio {
namespace {

bool has_no_body(std::string_view first_bytes) {
    return first_bytes.starts_with("HTTP/1.1 204") || first_bytes.starts_with("HTTP/1.1 304") ||
           first_bytes.starts_with("HTTP/1.0 204") || first_bytes.starts_with("HTTP/1.0 304");
}

bool is_field(std::string_view line, std::string_view lower_name) {
    return line.size() > lower_name.size() && line[lower_name.size()] == ':' &&
           std::ranges::equal(line.substr(0, lower_name.size()), lower_name, {},
                              [](unsigned char c) { return std::tolower(c); });
}

}  // namespace

std::unique_ptr<ResponseFitting> ResponseFitting::of(Client client, std::string_view first_bytes) {
    if (client.knows_chunks && client.wants_body && !has_no_body(first_bytes)) return nullptr;
    return std::unique_ptr<ResponseFitting>(new ResponseFitting(client));
}

std::string ResponseFitting::pass(std::string_view bytes) {
    std::string out;
    while (!bytes.empty() && !head_passed_) {
        const std::string_view before = bytes;
        const std::string_view piece = framing_.next(bytes);
        raw_head_.append(before.substr(0, before.size() - bytes.size()));
        if (!framing_.head_complete() && !framing_.malformed() && !framing_.overflowed()) continue;
        raw_head_.resize(raw_head_.size() - piece.size());
        out = head();
        head_passed_ = true;
        if (!bodyless_) out += piece;
    }
    if (bodyless_) return out;
    if (!unchunked_) return out.append(bytes);
    while (!bytes.empty() && !framing_.complete()) out += framing_.next(bytes);
    return out;
}

/// Of the final response: a client of HTTP/1.0 knows no interim ones.
std::string ResponseFitting::head() {
    const int status = framing_.head().status;
    unchunked_ = !client_.knows_chunks && client_.wants_body &&
                 framing_.framing() == answer::Framing::kChunked && !framing_.malformed();
    bodyless_ = !client_.wants_body || status == 204 || status == 304;
    const std::size_t interim = raw_head_.size() > 4
                                    ? raw_head_.rfind("\r\n\r\n", raw_head_.size() - 5)
                                    : std::string::npos;
    std::string_view rest = raw_head_;
    if (interim != std::string::npos && !client_.knows_chunks) rest.remove_prefix(interim + 4);
    std::string out;
    while (!rest.empty()) {
        const std::size_t end = rest.find("\r\n");
        const std::string_view line = rest.substr(0, end == std::string_view::npos ? end : end + 2);
        rest.remove_prefix(line.size());
        if (line == "\r\n" && rest.empty() && unchunked_) out += "Connection: close\r\n";
        if (is_field(line, "transfer-encoding") && (!client_.knows_chunks || status == 204))
            continue;
        if (is_field(line, "content-length") && status == 204) continue;
        if (is_field(line, "connection") && unchunked_) continue;
        out += line;
    }
    raw_head_ = {};
    return out;
}

}  // namespace fullstop::adapters::asio
