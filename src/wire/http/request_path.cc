// Every escape is read once, as servers do before they look for a route; then segments are cut, and
// what needs an escape gets it.
#include "wire/http/request_path.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace fullstop::wire {
namespace {

/// Letters that a path may hold as they are (RFC 3986, pchar), without ';' and '/', which divide
/// it.
bool is_plain(unsigned char c) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return word || std::string_view("-._~!$&'()*+,=:@").contains(static_cast<char>(c));
}

bool begins_with_scheme(std::string_view target, std::string_view scheme) {
    return target.size() >= scheme.size() &&
           std::ranges::equal(target.substr(0, scheme.size()), scheme, [](char a, char b) {
               return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
           });
}

/// The path and query of a target: one in absolute form names a server first.
std::string_view without_authority(std::string_view target) {
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (!begins_with_scheme(target, scheme)) continue;
        const auto end = target.find_first_of("/?", scheme.size());
        return end == std::string_view::npos ? "" : target.substr(end);
    }
    return target;
}

/// Escapes read once. Some servers read twice, or take an escaped divider for one and some do not.
std::expected<std::string, std::string> unescaped(std::string_view path) {
    std::string out;
    out.reserve(path.size());
    for (std::size_t at = 0; at < path.size(); ++at) {
        if (path[at] != '%') {
            out += path[at];
            continue;
        }
        unsigned value = 0;
        const char* const digits = path.data() + at + 1;
        if (path.size() - at < 3 ||
            std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2)
            return std::unexpected("the path holds a '%' without two hexadecimal digits");
        out += static_cast<char>(value);
        if (std::string_view("%?#").contains(out.back()))
            return std::unexpected(
                "the path holds an escaped '%', '?' or '#', which servers read in different ways");
        at += 2;
    }
    const auto ambiguous = [](unsigned char c) { return c < 0x20 || c == 0x7F || c == '\\'; };
    if (std::ranges::any_of(out, ambiguous))
        return std::unexpected("the path holds a control character or a backslash");
    return out;
}

void append_escaped(std::string& out, std::string_view segment) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    for (const unsigned char c : segment) {
        if (is_plain(c))
            out += static_cast<char>(c);
        else
            out.append("%").append(1, kDigits[c >> 4]).append(1, kDigits[c & 15]);
    }
}

}  // namespace

std::expected<RequestPath, std::string> normal_path(std::string_view target) {
    target = target.substr(0, target.find('#'));
    if (target == "*") return RequestPath{.path = "*", .query = {}};
    const std::string_view rest = without_authority(target);
    const auto question = std::min(rest.find('?'), rest.size());
    RequestPath out{.path = {},
                    .query = std::string(rest.substr(std::min(question + 1, rest.size())))};
    const auto path = unescaped(rest.substr(0, question));
    if (!path) return std::unexpected(path.error());
    const bool absolute = rest.size() < target.size();
    if (!path->starts_with('/') && !(absolute && path->empty()))
        return std::unexpected("the target of a request is a path that begins with '/'");
    std::vector<std::string_view> segments;
    for (std::size_t from = 0; from < path->size();) {
        const std::size_t end = std::min(path->find('/', from), path->size());
        std::string_view segment = std::string_view(*path).substr(from, end - from);
        segment = segment.substr(0, segment.find(';'));
        if (segment == "..") {
            if (!segments.empty()) segments.pop_back();
        } else if (!segment.empty() && segment != ".") {
            segments.push_back(segment);
        }
        from = end + 1;
    }
    for (const std::string_view segment : segments) append_escaped(out.path += '/', segment);
    if (segments.empty()) out.path = "/";
    return out;
}

}  // namespace fullstop::wire
