// Nothing here refuses anything: what is no step is none.
#include "script.h"

#include <algorithm>
#include <charconv>

namespace fullstop::fuzz {
namespace {

/// What stands for many times the same, written out.
std::string written_out(std::string_view text, std::size_t& left) {
    std::string out;
    while (!text.empty() && left > 0) {
        const std::size_t at = std::min(text.find("{{"), text.size());
        out += text.substr(0, at);
        text.remove_prefix(at);
        std::size_t times = 0;
        const auto number = std::from_chars(text.data() + std::min<std::size_t>(2, text.size()),
                                            text.data() + text.size(), times);
        const std::size_t end = text.find("}}");
        if (number.ec != std::errc() || number.ptr == text.data() + text.size() ||
            *number.ptr != '*' || end == std::string_view::npos) {
            out += text.substr(0, 2);
            text.remove_prefix(std::min<std::size_t>(2, text.size()));
            continue;
        }
        const auto begin = static_cast<std::size_t>(number.ptr - text.data()) + 1;
        const std::string_view piece = text.substr(begin, end - begin);
        times = std::min(times, left / std::max<std::size_t>(1, piece.size()));
        for (std::size_t i = 0; i < times && !piece.empty(); ++i) out += piece;
        left -= times * piece.size();
        text.remove_prefix(end + 2);
    }
    return out;
}

}  // namespace

std::vector<Step> steps_of(std::string_view input) {
    std::vector<Step> out;
    std::size_t left = kMostText;
    while (!input.empty()) {
        const std::size_t end = std::min(input.find("\n%"), input.size());
        const std::string_view line = input.substr(0, end);
        input.remove_prefix(std::min(end + 1, input.size()));
        if (line.size() < 2 || line[0] != '%') continue;
        const bool named = line.size() > 2 && line[2] >= '0' && line[2] <= '9';
        std::string_view text = line.substr(named ? 3 : 2);
        if (text.starts_with(' ')) text.remove_prefix(1);
        out.push_back({.what = line[1],
                       .who = named ? static_cast<std::size_t>(line[2] - '0') : 0,
                       .text = written_out(text, left)});
    }
    return out;
}

std::string head_bytes(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\n' && !out.ends_with('\r')) out += '\r';
        out += c;
    }
    return out + "\r\n\r\n";
}

std::string request_bytes(std::string_view text) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    std::string head(text.substr(0, end));
    const std::string_view body = text.substr(std::min(end + 2, text.size()));
    const std::size_t line = std::min(head.find('\n'), head.size());
    const bool tells_version = head.find(" HTTP/1.") < line;
    head.insert(line, tells_version ? "\nHost: h" : " HTTP/1.1\nHost: h");
    if (head.find("ontent-L") == std::string::npos && head.find("ransfer-E") == std::string::npos &&
        !body.empty())
        head += "\nContent-Length: " + std::to_string(body.size());
    return head_bytes(head) + std::string(body);
}

long number_in(std::string_view text, std::string_view name, long otherwise) {
    const std::size_t at = text.find(std::string(name) + "=");
    if (at == std::string_view::npos) return otherwise;
    const std::string_view rest = text.substr(at + name.size() + 1);
    long out = otherwise;
    std::from_chars(rest.data(), rest.data() + rest.size(), out);
    return out;
}

}  // namespace fullstop::fuzz
