// Where characters of UTF-8 begin and end (Unicode table 3-7).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fullstop::base {

enum class CharacterShape {
    kWhole,
    kUnfinished,  ///< more bytes could complete it
    kBroken,      ///< these bytes can never become a character
};

/// The character at the front of `bytes` (not empty) and how many bytes it has.
std::pair<CharacterShape, std::size_t> front_character(std::string_view bytes);
/// The code point of one whole character.
char32_t code_of(std::string_view character);
/// The bytes of a code point; half a surrogate pair becomes three bytes too ("WTF-8").
void append_character(std::string& out, char32_t code);
/// Position of the first byte that is not part of a character.
std::optional<std::size_t> first_invalid_byte(std::string_view text);
/// The front of `text`, at most `most` bytes, without the beginning of a character that does not
/// fit.
std::string_view front_characters(std::string_view text, std::size_t most);
/// `bytes` with U+FFFD for what is no character.
std::string valid_utf8(std::string_view bytes);
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace fullstop::base
