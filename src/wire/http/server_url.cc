// The user's URL, taken apart with Boost.URL: root, /v1, or a dialect's own path all mean the same
// server.
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include <algorithm>
#include <array>
#include <charconv>

#include "wire/http/request_text.h"

namespace fullstop::wire {
namespace {

constexpr std::uint16_t kHttpPort = 80, kHttpsPort = 443;
/// Paths that belong to a dialect and not to the place where the server is mounted; longest first.
constexpr std::array<std::string_view, 6> kOwnPaths = {
    "/v1/chat/completions", "/v1/completions", "/v1/models", "/api/chat", "/api/generate", "/v1"};

std::string base_path_of(std::string_view path) {
    const auto strip_slashes = [&] {
        while (path.ends_with('/')) path.remove_suffix(1);
    };
    strip_slashes();
    for (const auto own : kOwnPaths) {
        if (!path.ends_with(own)) continue;
        path.remove_suffix(own.size());
        break;
    }
    strip_slashes();
    return std::string(path);
}

/// Without what may be secret: credentials before the host, query, fragment.
std::string shown(std::string_view text) {
    std::string out(text.substr(0, text.find_first_of("?#")));
    const auto scheme = out.find("://");
    const auto host = scheme == std::string::npos ? 0 : scheme + 3;
    if (const auto at = out.substr(0, out.find('/', host)).rfind('@');
        at != std::string::npos && at >= host)
        out.erase(host, at + 1 - host);
    return out;
}

}  // namespace

base::Result<ServerUrl> parse_server_url(std::string_view text) {
    const std::string hint =
        "Write the server's root, for example http://127.0.0.1:8080 or http://127.0.0.1:8080/v1.";
    if (text.find("://") == std::string_view::npos)
        return base::usage_error("The URL '" + shown(text) + "' has no scheme.", hint);
    const auto parsed = boost::urls::parse_uri(boost::core::string_view(text.data(), text.size()));
    if (!parsed)
        return base::usage_error(
            "'" + shown(text) + "' is not a URL: " + parsed.error().message() + ".", hint);
    const boost::urls::url_view& url = *parsed;
    if (url.has_userinfo())
        return base::usage_error("The URL contains credentials, which would end up in reports.",
                                 "Pass them with --api-key-env or --header instead.");
    ServerUrl out;
    std::string scheme(url.scheme());
    std::ranges::transform(scheme, scheme.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    if (scheme != "http" && scheme != "https")
        return base::usage_error(
            "The URL scheme '" + scheme + "' is not supported; it is http or https.", hint);
    out.tls = scheme == "https";
    out.port = out.tls ? kHttpsPort : kHttpPort;
    if (const std::string port(url.port()); !port.empty()) {
        const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
        if (error != std::errc() || out.port == 0)
            return base::usage_error(
                "The port '" + port + "' in the URL is not between 1 and 65535.", hint);
    }
    out.host = url.host_address();
    if (out.host.empty())
        return base::usage_error("The URL '" + shown(text) + "' names no host.", hint);
    out.base_path = base_path_of(url.encoded_path());
    if (url.has_query()) out.query = "?" + std::string(url.encoded_query());
    out.text = shown(text);
    return out;
}

}  // namespace fullstop::wire
