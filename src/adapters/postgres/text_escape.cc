// The table of RFC 3629, section 4: which second bytes may follow which first ones.
#include "adapters/postgres/text_escape.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

#include "store/encoding.h"

namespace fullstop::adapters::postgres {
namespace {

constexpr char kEscape = 0x10;

/// Bytes of the character that begins there; 0: none does.
std::size_t character_at(std::string_view bytes, std::size_t at) {
    const auto byte = [&](std::size_t i) {
        return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U;
    };
    const auto within = [&](std::size_t i, unsigned low, unsigned high) {
        return byte(i) >= low && byte(i) <= high;
    };
    const auto follows = [&](std::size_t i) { return within(i, 0x80, 0xBF); };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF)
        return within(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follows(2)
                   ? 3
                   : 0;
    if (first >= 0xF0 && first <= 0xF4)
        return within(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follows(2) &&
                       follows(3)
                   ? 4
                   : 0;
    return 0;
}

}  // namespace

std::string escaped(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = character_at(bytes, at);
        if (length == 0 || bytes[at] == '\0' || bytes[at] == kEscape) {
            fmt::format_to(std::back_inserter(out), "{}{:02x}", kEscape,
                           static_cast<unsigned char>(bytes[at]));
            ++at;
        } else {
            out += bytes.substr(at, length);
            at += length;
        }
    }
    return out;
}

std::string unescaped(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != kEscape) {
            out += text[at];
            continue;
        }
        unsigned char byte = 0;
        store::expect(at + 2 < text.size(), "two digits after DLE");
        const char* digits = text.data() + at + 1;
        const auto read = std::from_chars(digits, digits + 2, byte, 16);
        store::expect(read.ec == std::errc() && read.ptr == digits + 2, "two digits after DLE");
        out += static_cast<char>(byte);
        at += 2;
    }
    return out;
}

}  // namespace fullstop::adapters::postgres
