// libpq does the reading. Before that, '@', '/' and '?' in a password are refused where libpq would
// take a part of the password for a host or a port, and show it in its messages.
#include "adapters/postgres/target.h"

#include <fmt/format.h>

#include <memory>

#include "adapters/postgres/libpq.h"

namespace fullstop::adapters::postgres {
namespace {

constexpr const char* kForExample =
    "for example postgresql://fullstop@127.0.0.1:5432/fullstop, with the password in PGPASSWORD or "
    "~/.pgpass";

/// The raw password of `user:password@`; empty: none.
std::string_view password_of(std::string_view rest) {
    const auto at = rest.find('@');
    if (at == std::string_view::npos) return {};
    const std::string_view user = rest.substr(0, at);
    const auto colon = user.find(':');
    return colon == std::string_view::npos ? std::string_view() : user.substr(colon + 1);
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
    for (std::size_t at = text.find(what); !what.empty() && at != std::string::npos;
         at = text.find(what, at + with.size()))
        text.replace(at, what.size(), with);
}

/// libpq's words on a URL it cannot read may repeat any piece of it.
std::string without_secrets(std::string words, std::string_view rest) {
    replace_all(words, password_of(rest), "***");
    for (const std::string_view key : {"password=", "sslpassword="}) {
        const auto at = rest.find(key);
        if (at == std::string_view::npos) continue;
        const std::string_view value = rest.substr(at + key.size());
        replace_all(words, value.substr(0, value.find('&')), "***");
    }
    while (!words.empty() && words.back() == '\n') words.pop_back();
    return words;
}

std::string name_of(const std::map<std::string, std::string>& options) {
    const auto get = [&](const char* key) {
        const auto found = options.find(key);
        return found == options.end() ? std::string() : found->second;
    };
    const std::string user = get("user"), host = get("host"), port = get("port");
    std::string name = "postgresql://" + user + (user.empty() ? "" : "@");
    const bool socket = host.starts_with('/');
    if (!socket)
        name += host.find(':') != std::string::npos && host.find(',') == std::string::npos
                    ? "[" + host + "]"
                    : host;
    if (!port.empty() && !socket) name += ":" + port;
    name += "/" + get("dbname");
    return socket ? fmt::format("{}?host={}{}", name, host, port.empty() ? "" : "&port=" + port)
                  : name;
}

}  // namespace

bool is_url(std::string_view text) {
    return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

base::Result<Target> parse_url(const std::string& url) {
    const std::string_view rest = std::string_view(url).substr(url.find("://") + 3);
    const auto at = rest.rfind('@');
    if (at != std::string_view::npos && (rest.find('@') != at || rest.find_first_of("/?") < at))
        return base::usage_error(
            "the URL of the database has an '@', '/' or '?' where none belongs",
            "inside a user's name or password write %40 for '@', %2F for '/' and %3F for '?'");
    if (auto there = load_libpq(); !there) return std::unexpected(there.error());
    char* trouble = nullptr;
    const std::unique_ptr<PQconninfoOption, decltype(&::PQconninfoFree)> read(
        pq().PQconninfoParse(url.c_str(), &trouble), pq().PQconninfoFree);
    const std::unique_ptr<char, decltype(&::PQfreemem)> words(trouble, pq().PQfreemem);
    if (!read)
        return base::usage_error("the URL of the database cannot be read: " +
                                     without_secrets(words ? words.get() : "no memory", rest),
                                 kForExample);
    Target target;
    for (const PQconninfoOption* option = read.get(); option->keyword != nullptr; ++option)
        if (option->val != nullptr) target.options[option->keyword] = option->val;
    target.name = name_of(target.options);
    target.options.try_emplace("fallback_application_name", "fullstop");
    target.options["client_encoding"] = "UTF8";
    return target;
}

}  // namespace fullstop::adapters::postgres
