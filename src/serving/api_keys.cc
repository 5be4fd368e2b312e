// One line, one key.
#include "serving/api_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/sha256.h"
#include "serving/limits.h"

namespace fullstop::serving {
namespace {

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Headers carry visible ASCII; a key with anything else could never be sent.
bool can_be_sent(std::string_view key) {
    return !key.empty() && key.size() <= kMaxApiKeyBytes &&
           std::ranges::all_of(key, [](char c) { return c > ' ' && c < '\x7F'; });
}

/// Every byte is looked at, whatever came before.
bool equal(std::string_view a, std::string_view b) {
    unsigned difference = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    return difference == 0;
}

bool is_bearer(std::string_view scheme) {
    return std::ranges::equal(scheme, std::string_view("bearer"), [](char a, char b) {
        return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
    });
}

}  // namespace

base::Result<ApiKeys> ApiKeys::parse(std::string_view text, const std::string& source) {
    ApiKeys keys;
    int number = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = trimmed(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        ++number;
        if (line.empty() || line.front() == '#') continue;
        const auto wrong = [&](const std::string& what) {
            return base::usage_error(fmt::format("{}:{}: {}", source, number, what),
                                     "name:key or key, one a line; # begins a comment");
        };
        const std::size_t colon = line.find(':');
        std::string name = colon == std::string_view::npos
                               ? fmt::format("key {}", number)
                               : std::string(trimmed(line.substr(0, colon)));
        const std::string_view key =
            colon == std::string_view::npos ? line : trimmed(line.substr(colon + 1));
        if (name.empty() || name.size() > kMaxClientNameBytes)
            return wrong(fmt::format("a name has 1 to {} bytes", kMaxClientNameBytes));
        if (!can_be_sent(key))
            return wrong(fmt::format("a key has 1 to {} visible ASCII characters without spaces",
                                     kMaxApiKeyBytes));
        std::string digest = base::sha256_hex(key);
        for (const Key& other : keys.keys_) {
            if (other.digest == digest)
                return wrong(fmt::format("this key stands in line {} already", other.line));
            if (other.name == name)
                return wrong(
                    fmt::format("the name '{}' stands in line {} already", name, other.line));
        }
        keys.keys_.push_back(
            {.name = std::move(name), .digest = std::move(digest), .line = number});
    }
    if (keys.keys_.empty())
        return base::usage_error(fmt::format("{} holds no key", source),
                                 "name:key or key, one a line; without a file everybody may ask");
    return keys;
}

std::optional<std::string> ApiKeys::client(std::string_view authorization) const {
    const std::size_t space = authorization.find(' ');
    if (space == std::string_view::npos || !is_bearer(authorization.substr(0, space)))
        return std::nullopt;
    const std::string digest = base::sha256_hex(trimmed(authorization.substr(space)));
    const Key* found = nullptr;
    for (const Key& key : keys_)
        if (equal(key.digest, digest)) found = &key;
    return found == nullptr ? std::nullopt : std::optional(found->name);
}

std::vector<std::string> ApiKeys::names() const {
    std::vector<std::string> out;
    for (const Key& key : keys_) out.push_back(key.name);
    return out;
}

}  // namespace fullstop::serving
