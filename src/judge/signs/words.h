// Searching text without case, for messages, headers and required facts.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace fullstop::judge {

/// ASCII only: UTF-8 sequences pass unchanged.
inline std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](unsigned char c) {
        return c < 128 ? static_cast<char>(std::tolower(c)) : static_cast<char>(c);
    });
    return result;
}

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// The start of `text`, at most `bytes` long, line breaks as spaces: for quoting in a sentence.
inline std::string one_line(std::string_view text, std::size_t bytes) {
    while (bytes < text.size() && bytes > 0 &&
           (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U)
        --bytes;
    std::string result(text.substr(0, bytes));
    std::ranges::replace_if(result, [](unsigned char c) { return c < 32; }, ' ');
    return result;
}

/// The end of `text`, at most `bytes` long, starting at a whole UTF-8 character.
inline std::string tail(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes) return std::string(text);
    std::size_t from = text.size() - bytes;
    while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U) ++from;
    return std::string(text.substr(from));
}

}  // namespace fullstop::judge
