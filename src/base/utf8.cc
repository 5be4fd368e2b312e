// One character at a time; no table beyond the exceptions for the second byte.
#include "base/utf8.h"

namespace fullstop::base {

std::pair<CharacterShape, std::size_t> front_character(std::string_view bytes) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned lead = at(0);
    if (lead < 0x80) return {CharacterShape::kWhole, 1};
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4) return {CharacterShape::kBroken, 1};
    for (std::size_t i = 1; i < length; ++i) {
        if (i == bytes.size()) return {CharacterShape::kUnfinished, i};
        unsigned low = 0x80, high = 0xBF;
        if (i == 1) {
            if (lead == 0xE0) low = 0xA0;
            if (lead == 0xED) high = 0x9F;
            if (lead == 0xF0) low = 0x90;
            if (lead == 0xF4) high = 0x8F;
        }
        if (at(i) < low || at(i) > high) return {CharacterShape::kBroken, i};
    }
    return {CharacterShape::kWhole, length};
}

char32_t code_of(std::string_view character) {
    const unsigned char lead = static_cast<unsigned char>(character.front());
    char32_t code = lead < 0x80 ? lead : lead & (0xFFU >> (character.size() + 1));
    for (const char next : character.substr(1))
        code = code << 6 | (static_cast<unsigned char>(next) & 0x3FU);
    return code;
}

void append_character(std::string& out, char32_t code) {
    const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) return put(code);
    if (code < 0x800) {
        put(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            put(0xE0 | code >> 12);
        } else {
            put(0xF0 | code >> 18);
            put(0x80 | (code >> 12 & 0x3F));
        }
        put(0x80 | (code >> 6 & 0x3F));
    }
    put(0x80 | (code & 0x3F));
}

std::optional<std::size_t> first_invalid_byte(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto [shape, length] = front_character(text.substr(at));
        if (shape != CharacterShape::kWhole) return at;
        at += length;
    }
    return std::nullopt;
}

std::string_view front_characters(std::string_view text, std::size_t most) {
    if (text.size() <= most) return text;
    constexpr std::size_t kLongest = 4;
    for (std::size_t at = most; at > 0 && most - at < kLongest; --at)
        if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) return text.substr(0, at);
    return text.substr(0, most);  // no character is that long: what stands there is none
}

std::string valid_utf8(std::string_view bytes) {
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
        const auto [shape, length] = front_character(bytes.substr(at));
        out += shape == CharacterShape::kWhole ? bytes.substr(at, length) : kReplacementCharacter;
        at += length;
    }
    return out;
}

}  // namespace fullstop::base
