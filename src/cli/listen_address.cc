// The last colon parts host and port, so that IPv6 addresses work with and without brackets.
#include "cli/listen_address.h"

#include <fmt/format.h>

#include <charconv>

namespace fullstop::cli {

base::Result<std::pair<std::string, std::uint16_t>> parse_listen_address(const std::string& text) {
    const auto colon = text.rfind(':');
    std::string host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const char* const digits = colon == std::string::npos ? end : text.data() + colon + 1;
    const auto [stopped, error] = std::from_chars(digits, end, port);
    if (host.empty() || error != std::errc() || stopped != end)
        return base::usage_error(fmt::format("--listen {} is not HOST:PORT", text),
                                 "for example --listen 127.0.0.1:8080; port 0 picks a free one");
    return std::pair(std::move(host), port);
}

std::string shown_host(const std::string& host) {
    return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace fullstop::cli
