// Plain string building; the framing rules are those of RFC 9112 and of server-sent events.
#include "wire/http/response_text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fullstop::wire {
namespace {

constexpr std::array<std::pair<int, std::string_view>, 17> kPhrases = {{
    {200, "OK"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {413, "Content Too Large"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
}};

std::string hex(std::size_t number) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    do out.insert(out.begin(), kDigits[number % 16]);
    while (number /= 16);
    return out;
}

}  // namespace

std::string response_head(int status, const Headers& headers) {
    const auto* phrase =
        std::ranges::find(kPhrases, status, &std::pair<int, std::string_view>::first);
    std::string out = "HTTP/1.1 " + std::to_string(status) + " ";
    if (phrase != kPhrases.end()) out += phrase->second;
    out += "\r\n";
    for (const auto& [name, value] : headers)
        out.append(name).append(": ").append(value).append("\r\n");
    return out + "\r\n";
}

std::string whole_response(int status, std::string_view content_type, std::string_view body,
                           const Headers& headers) {
    Headers all = {{"Content-Type", std::string(content_type)},
                   {"Content-Length", std::to_string(body.size())},
                   {"Connection", "close"}};
    for (const auto& header : headers) {
        const auto same =
            std::ranges::find(all, header.first, &std::pair<std::string, std::string>::first);
        if (same == all.end())
            all.push_back(header);
        else
            same->second = header.second;
    }
    return response_head(status, all).append(body);
}

std::string stream_head(std::string_view content_type, const Headers& headers) {
    Headers all = {{"Content-Type", std::string(content_type)},
                   {"Cache-Control", "no-cache"},
                   {"X-Accel-Buffering", "no"},
                   {"Transfer-Encoding", "chunked"}};
    all.insert(all.end(), headers.begin(), headers.end());
    return response_head(200, all);
}

std::string chunk(std::string_view data) {
    if (data.empty()) return {};
    return hex(data.size()).append("\r\n").append(data).append("\r\n");
}

std::string last_chunk() { return "0\r\n\r\n"; }

std::string sse_event(std::string_view data, std::string_view name) {
    std::string out;
    if (!name.empty()) out.append("event: ").append(name).append("\n");
    for (bool more = true; more;) {
        const auto end = data.find('\n');
        more = end != std::string_view::npos;
        out.append("data: ").append(data.substr(0, end)).append("\n");
        if (more) data.remove_prefix(end + 1);
    }
    return out + "\n";
}

std::string sse_comment(std::string_view text) {
    return std::string(":").append(text.empty() ? "" : " ").append(text).append("\n\n");
}

}  // namespace fullstop::wire
