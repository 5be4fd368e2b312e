// The table of RFC 3629, section 4: which second bytes may follow which first ones.
#include "adapters/postgres/text_escape.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

#include "store/encoding.h"

#include "base/utf8.h"

namespace fullstop::adapters::postgres {
namespace {

constexpr char kEscape = 0x10;

}  // namespace

std::string escaped(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const auto [shape, length] = base::front_character(bytes.substr(at));
        if (shape != base::CharacterShape::kWhole || bytes[at] == '\0' || bytes[at] == kEscape) {
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
