// One table of what is not shown: control characters, marks of direction, zero width, line
// separators, tags.
#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace fullstop::base {
namespace {

struct Range {
    char32_t first, last;
};
constexpr Range kHidden[] = {{0, 0x1F},        {0x7F, 0x9F},      {0x061C, 0x061C},
                             {0x180E, 0x180E}, {0x200B, 0x200F},  {0x2028, 0x202E},
                             {0x2060, 0x206F}, {0xFEFF, 0xFEFF},  {0xFFF9, 0xFFFB},
                             {0xFFFE, 0xFFFF}, {0xE0000, 0xE007F}};

void add(std::string_view character, std::string& out) {
    if (front_character(character).first != CharacterShape::kWhole) {
        out += kReplacementCharacter;  // as in our JSON, so that a report says the same when it was
                                       // read from there
        return;
    }
    const char32_t code = code_of(character);
    if (is_printable(code))
        out += character;
    else if (code == '\n' || code == '\r' || code == '\t')
        out += ' ';
    else if (code < 0x80)
        out += fmt::format("\\x{:02x}", static_cast<unsigned>(code));
    else
        out += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
}

}  // namespace

bool is_printable(char32_t code) {
    return std::ranges::none_of(
        kHidden, [code](const Range& range) { return code >= range.first && code <= range.last; });
}

std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t size = front_character(text).second;
        add(text.substr(0, size), out);
        text.remove_prefix(size);
    }
    return out;
}

std::string printable_lines(std::string_view text) {
    std::string out;
    while (true) {
        const auto end = text.find('\n');
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        out += printable(line);
        if (end == std::string_view::npos) return out;
        out += '\n';
        text.remove_prefix(end + 1);
    }
}

}  // namespace fullstop::base
