// Head, then Content-Length bytes; anything else is a refusal with its status.
#include "simulator/world/http_request.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace fullstop::simulator {
namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    std::ranges::transform(out, out.begin(), [](unsigned char c) {
        return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    });
    return out;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

}  // namespace

void RequestReader::bytes(std::string_view more) {
    if (ready_ || refused_) return;
    buffer_ += more;
    if (!body_at_) read_head();
    if (body_at_ && !refused_ && buffer_.size() - *body_at_ >= body_length_) ready_ = true;
}

void RequestReader::read_head() {
    const auto end = buffer_.find("\r\n\r\n");
    if (end == std::string::npos || end > kMaxRequestHeadBytes) {
        if (buffer_.size() > kMaxRequestHeadBytes) refused_ = 431;
        return;
    }
    const std::string_view head = std::string_view(buffer_).substr(0, end);
    auto line_end = std::min(head.find("\r\n"), head.size());
    const std::string_view first = head.substr(0, line_end);
    const auto method_end = first.find(' ');
    const auto target_end = first.rfind(' ');
    if (method_end == std::string_view::npos || target_end <= method_end + 1 ||
        !first.substr(target_end + 1).starts_with("HTTP/1.")) {
        refused_ = 400;
        return;
    }
    request_.method = first.substr(0, method_end);
    request_.target = first.substr(method_end + 1, target_end - method_end - 1);
    while (line_end < head.size() && !refused_) {
        const auto start = line_end + 2;
        line_end = std::min(head.find("\r\n", start), head.size());
        if (!read_line(head.substr(start, line_end - start))) refused_ = refused_.value_or(400);
    }
    body_at_ = end + 4;
}

bool RequestReader::read_line(std::string_view line) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return false;
    const auto name = lower(line.substr(0, colon));
    const auto value = trimmed(line.substr(colon + 1));
    if (name == "transfer-encoding") refused_ = 501;
    if (name == "content-length") {
        const auto [rest, error] =
            std::from_chars(value.data(), value.data() + value.size(), body_length_);
        if (error != std::errc{} || rest != value.data() + value.size()) return false;
        if (body_length_ > kMaxRequestBodyBytes) refused_ = 413;
    }
    request_.headers[name] = value;
    return true;
}

net::ServiceRequest RequestReader::take() {
    request_.body = buffer_.substr(*body_at_, body_length_);
    auto whole = std::exchange(request_, {});
    auto rest = buffer_.substr(*body_at_ + body_length_);
    buffer_.clear();
    body_at_.reset();
    body_length_ = 0;
    ready_ = false;
    bytes(rest);
    return whole;
}

std::string refusal_text(int status) {
    const auto* reason = status == 413   ? "Content Too Large"
                         : status == 431 ? "Request Header Fields Too Large"
                         : status == 501 ? "Not Implemented"
                                         : "Bad Request";
    return fmt::format("HTTP/1.1 {} {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status,
                       reason);
}

}  // namespace fullstop::simulator
