// Both commands take the same flags with the same meaning.
#include "cli/access.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "cli/input_file.h"
#include "serving/limits.h"

namespace fullstop::cli {
namespace {

constexpr std::size_t kShownNames = 8;

std::string names_of(const serving::ApiKeys& keys) {
    const std::vector<std::string> names = keys.names();
    std::string out;
    for (std::size_t i = 0; i < std::min(names.size(), kShownNames); ++i)
        out += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kShownNames) out += fmt::format(" and {} more", names.size() - kShownNames);
    return out;
}

}  // namespace

void declare_access(CLI::App& app, AccessFlags& flags) {
    app.add_option("--api-key-file", flags.key_file,
                   "file of API keys, 'name:key' or 'key' per line, # begins a comment. With it "
                   "every path but /health needs 'Authorization: Bearer KEY'");
    app.add_option(
           "--allow-origin", flags.origins,
           "origin of web pages that may call this server, for example https://chat.example.org; "
           "may repeat. Its host name is accepted as this server's. Pages of other origins get "
           "403; requests without an Origin are not affected")
        ->allow_extra_args(false);
}

base::Result<serving::Access> read_access(const AccessFlags& flags) {
    serving::Access access;
    auto origins = serving::AllowedOrigins::parse(flags.origins);
    if (!origins) return std::unexpected(origins.error());
    access.origins = std::move(*origins);
    if (flags.key_file.empty()) return access;
    const auto text = read_input(flags.key_file, serving::kMaxKeyFileBytes, "file of keys",
                                 "check its name and its permissions");
    if (!text)
        return base::usage_error("--api-key-file: " + text.error().message, text.error().hint);
    auto keys = serving::ApiKeys::parse(*text, flags.key_file);
    if (!keys) return std::unexpected(keys.error());
    access.keys = std::move(*keys);
    return access;
}

std::string access_warnings(const AccessFlags& flags, const std::string& host) {
    if (flags.key_file.empty())
        return serving::is_loopback(host) ? ""
                                          : fmt::format(
                                                "warning: everybody who reaches {} may use this "
                                                "server: it is no loopback address, and "
                                                "there is no --api-key-file\n",
                                                host);
    namespace fs = std::filesystem;
    std::error_code trouble;
    const auto others = fs::status(flags.key_file, trouble).permissions() &
                        (fs::perms::group_all | fs::perms::others_all);
    if (trouble || others == fs::perms::none) return "";
    return fmt::format(
        "warning: the keys in {} are open to other users of this machine: chmod 600 {}\n",
        flags.key_file, flags.key_file);
}

std::string access_summary(const AccessFlags& flags, const serving::Access& access) {
    std::string out =
        access.keys.open()
            ? "Who may ask: everybody who reaches it, without a key (no api_key_file).\n"
            : fmt::format(
                  "Who may ask: holders of a key in {} ({}); others get 401, except for /health. "
                  "No client's key goes on to a server, "
                  "which gets that of its api_key_env, or none.\n",
                  flags.key_file, names_of(access.keys));
    out += "Web pages may ask from this address itself";
    for (const std::string& origin : flags.origins) out += ", from " + origin;
    return out + "; those of other origins get 403.\n";
}

}  // namespace fullstop::cli
