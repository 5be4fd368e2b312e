// Boost.URL reads origins and hosts; what it does not read is no origin of ours.
#include "serving/browser_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/url.hpp>
#include <utility>

#include "serving/request_identity.h"

namespace fullstop::serving {
namespace {

namespace urls = boost::urls;

std::string default_port(std::string_view scheme) {
    return scheme == "https" ? "443" : scheme == "http" ? "80" : "";
}

std::optional<Origin> parse_origin(std::string_view text) {
    const auto url = urls::parse_uri(text);
    if (!url || !url->has_authority() || url->has_userinfo() || !url->encoded_path().empty() ||
        url->has_query() || url->has_fragment())
        return std::nullopt;
    Origin out{.scheme = lower(url->scheme()),
               .host = lower(url->encoded_host()),
               .port = std::string(url->port())};
    if (out.host.empty()) return std::nullopt;
    if (out.port.empty()) out.port = default_port(out.scheme);
    return out;
}

/// The Host header names the same place, for a page of this scheme.
bool same_place(const Origin& origin, std::string_view host) {
    const auto own = urls::parse_authority(host);
    if (!own || own->has_userinfo()) return false;
    const std::string port = own->has_port() && !own->port().empty() ? std::string(own->port())
                                                                     : default_port(origin.scheme);
    return lower(own->encoded_host()) == origin.host && port == origin.port;
}

bool from_browser(const net::ServiceRequest& request) {
    const auto fetch = request.headers.lower_bound("sec-fetch-");
    return (fetch != request.headers.end() && fetch->first.starts_with("sec-fetch-")) ||
           header(request, "user-agent").starts_with("Mozilla/");
}

/// A name that anybody may point at this address: none of the machine's own, and no address.
bool is_foreign_name(const urls::authority_view& host, const AllowedOrigins& allowed) {
    if (host.host_type() != urls::host_type::name || host.encoded_host().empty()) return false;
    const std::string name = lower(host.encoded_host());
    return name != "localhost" && !name.ends_with(".localhost") && !allowed.allow_host(name);
}

}  // namespace

base::Result<AllowedOrigins> AllowedOrigins::parse(const std::vector<std::string>& words) {
    AllowedOrigins out;
    for (const std::string& word : words) {
        auto origin = parse_origin(word);
        if (!origin)
            return base::usage_error(fmt::format("--allow-origin {} is not an origin", word),
                                     "SCHEME://HOST[:PORT], for example https://chat.example.org");
        out.words_.push_back(word);
        out.origins_.push_back(std::move(*origin));
    }
    return out;
}

bool AllowedOrigins::allow(const Origin& origin) const {
    return std::ranges::find(origins_, origin) != origins_.end();
}

bool AllowedOrigins::allow_host(std::string_view name) const {
    return std::ranges::find(origins_, name, &Origin::host) != origins_.end();
}

std::optional<std::string> foreign_page(const net::ServiceRequest& request,
                                        const AllowedOrigins& allowed) {
    constexpr const char* kRemedy = "; --allow-origin ORIGIN allows one";
    const auto sent = request.headers.find("origin");
    const bool has_origin = sent != request.headers.end();
    const std::string_view host = header(request, "host");
    if (has_origin) {
        const auto origin = parse_origin(sent->second);
        if (origin && allowed.allow(*origin)) return std::nullopt;
        if (!origin || !same_place(*origin, host))
            return std::string("a page of another origin may not ask here") + kRemedy;
    }
    if (header(request, "sec-fetch-site") == "cross-site")
        return std::string("a page of another site may not ask here") + kRemedy;
    if (!has_origin && !from_browser(request)) return std::nullopt;
    const auto own = urls::parse_authority(host);
    if (own && !is_foreign_name(*own, allowed)) return std::nullopt;
    return std::string(
               "a browser asked under a name that is not known to be this server's (the Host "
               "header)") +
           kRemedy;
}

bool is_loopback(std::string_view host) {
    const std::string name = lower(host);
    if (name == "localhost" || name.ends_with(".localhost")) return true;
    if (const auto four = urls::parse_ipv4_address(name)) return four->is_loopback();
    const auto six = urls::parse_ipv6_address(name);
    return six && (six->is_loopback() || (six->is_v4_mapped() && six->to_bytes()[12] == 127));
}

}  // namespace fullstop::serving
