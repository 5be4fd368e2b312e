// Boost.URL knows the form; here is what it may mean.
#include "cli/gateway/store_url.h"

#include <fmt/format.h>

#include <boost/url.hpp>
#include <charconv>
#include <climits>
#include <cstdint>

namespace fullstop::cli {
namespace {

constexpr const char* kExample =
    "for example \"redis://127.0.0.1:6379\" or \"redis://:password@store:6379/2\"";

std::optional<int> number_of(std::string_view digits, int least, int most) {
    int out = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    if (error != std::errc() || end != digits.data() + digits.size() || out < least || out > most)
        return std::nullopt;
    return out;
}

}  // namespace

base::Result<gateway::SharedStore> parse_store_url(std::string_view text) {
    const auto parsed = boost::urls::parse_uri(text);
    if (!parsed) return base::usage_error("wants the URL of a Redis or Valkey", kExample);
    const boost::urls::url_view& url = *parsed;
    if (url.scheme() != "redis" && url.scheme() != "rediss")
        return base::usage_error(
            fmt::format("{}:// is no scheme of a store", std::string(url.scheme())), kExample);
    gateway::SharedStore out;
    out.host = url.host_address();
    out.tls = url.scheme() == "rediss";
    if (out.host.empty()) return base::usage_error("names no host", kExample);
    const std::string digits(url.port());
    const auto port = digits.empty() ? out.port : number_of(digits, 1, UINT16_MAX);
    if (!port) return base::usage_error("the port is a number from 1 to 65535", kExample);
    out.port = static_cast<std::uint16_t>(*port);
    const std::string path(url.encoded_path());
    const auto database =
        path.size() < 2 ? 0 : number_of(std::string_view(path).substr(1), 0, INT_MAX);
    if (!database)
        return base::usage_error("behind the host stands the number of a database, or nothing",
                                 kExample);
    if (url.has_query() || url.has_fragment())
        return base::usage_error("has no '?' or '#' part", kExample);
    out.database = *database;
    out.user = url.user();
    out.password = url.password();
    if (!out.user.empty() && out.password.empty())
        return base::usage_error("names a user without a password",
                                 "redis://:password@HOST for a password alone");
    return out;
}

}  // namespace fullstop::cli
