// Ranges are sorted where that matters, by opposite().
#include "schema/pattern/character_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fullstop::schema {
namespace {

constexpr std::uint32_t kLastCharacter = 0x10FFFF;

}  // namespace

CharacterSet CharacterSet::opposite() const {
    std::vector<CharacterRange> sorted = ranges_;
    std::ranges::sort(sorted, {}, &CharacterRange::first);
    CharacterSet out;
    std::uint32_t next = 0;
    for (const CharacterRange& range : sorted) {
        if (range.first > next) out.add(next, range.first - 1);
        next = std::max(next, range.last + 1);
    }
    if (next <= kLastCharacter) out.add(next, kLastCharacter);
    return out;
}

CharacterSet::Spelling CharacterSet::spelling() const {
    CharacterSet unwritten = opposite();  // and what cannot stand in a JSON text as it is
    for (const CharacterRange range :
         std::array<CharacterRange, 4>{{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0xD800, 0xDFFF}}})
        unwritten.add(range.first, range.last);
    Spelling out;
    const auto choice = [&](const std::string& way) {
        out.grammar += (out.choices == 0 ? "" : " | ") + way;
        ++out.choices;
    };
    std::string plain;
    for (const CharacterRange& range : unwritten.opposite().ranges_)
        plain += fmt::format("\\U{:08X}-\\U{:08X}", range.first, range.last);
    if (!plain.empty()) choice("[" + plain + "]");
    const auto holds = [&](std::uint32_t code) {
        return std::ranges::any_of(
            ranges_, [&](const CharacterRange& r) { return r.first <= code && code <= r.last; });
    };
    if (holds('"')) choice(R"("\\\"")");
    if (holds('\\')) choice(R"("\\\\")");
    if (out.choices > 1) out.grammar = "(" + out.grammar + ")";
    return out;
}

}  // namespace fullstop::schema
