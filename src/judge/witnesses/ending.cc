#include "judge/witnesses/ending.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "judge/signs/words.h"

namespace fullstop::judge {
namespace {

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
        text.remove_suffix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
        text.remove_prefix(1);
    return text;
}

std::size_t fences(std::string_view text) {
    std::size_t count = 0;
    for (std::size_t at = text.find("```"); at != std::string_view::npos;
         at = text.find("```", at + 3))
        ++count;
    return count;
}

/// Full stops of many scripts, closing quotes and brackets, markdown that closes.
bool closes_sentence(std::string_view text) {
    constexpr std::string_view kAscii = ".!?)]}\"'`*_|>;:$";
    constexpr std::array<std::string_view, 10> kWide = {"。", "！", "？", "…",  "”",
                                                        "’",  "»",  "」", "』", "।"};
    if (text.back() == ':') return false;
    if (kAscii.find(text.back()) != std::string_view::npos) return true;
    return std::ranges::any_of(kWide, [&](std::string_view mark) { return text.ends_with(mark); });
}

std::string_view last_line(std::string_view text) {
    const std::size_t at = text.rfind('\n');
    return at == std::string_view::npos ? text : trimmed(text.substr(at + 1));
}

/// "- ", "* ", "1. ", "12) ": the length of the mark, 0 when the line is no list item.
std::size_t list_mark(std::string_view line) {
    if (line.starts_with("- ") || line.starts_with("* ") || line == "-" || line == "*")
        return std::min<std::size_t>(2, line.size());
    std::size_t digits = 0;
    while (digits < line.size() && std::isdigit(static_cast<unsigned char>(line[digits])) != 0)
        ++digits;
    const bool numbered = digits > 0 && digits <= 3 && digits < line.size() &&
                          (line[digits] == '.' || line[digits] == ')');
    return numbered && (line.size() == digits + 1 || line[digits + 1] == ' ') ? digits + 1 : 0;
}

/// A pictograph (emoji) ends a chat answer as well as a full stop does.
bool ends_in_pictograph(std::string_view text) {
    std::size_t at = text.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) --at;
    const auto lead = static_cast<unsigned char>(text[at]);
    return lead == 0xF0 ||
           (lead == 0xE2 && at + 1 < text.size() &&
            static_cast<unsigned char>(text[at + 1]) >= 0x98) ||
           text.ends_with("\xEF\xB8\x8F");
}

Ending list_ending(std::string_view line, std::size_t mark) {
    if (trimmed(line.substr(mark)).empty())
        return {true, false, fmt::format("the last list item is empty: \"{}\"", line)};
    return {};
}

}  // namespace

bool json_closed(std::string_view text) {
    const std::size_t start = text.find_first_of("{[");
    if (start == std::string_view::npos) return true;
    int depth = 0;
    bool quoted = false, escaped = false;
    for (const char c : text.substr(start)) {
        if (escaped) {
            escaped = false;
        } else if (quoted) {
            if (c == '\\') escaped = true;
            if (c == '"') quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            return true;
        }
    }
    return false;
}

Ending ending_of(std::string_view whole) {
    const std::string_view text = trimmed(whole);
    if (text.empty()) return {};
    if (fences(text) % 2 == 1) return {true, true, "a code fence is left open"};
    if ((text.front() == '{' || text.front() == '[') && !json_closed(text))
        return {true, true, "a JSON document is left open"};
    const std::string_view line = last_line(text);
    if (const std::size_t mark = list_mark(line); mark > 0) return list_ending(line, mark);
    if (closes_sentence(text) || ends_in_pictograph(text)) return {};
    // One word or number, and headings, are whole answers without a full stop.
    if (!contains(text, " ") || line.starts_with("#")) return {};
    return {true, false, fmt::format("the last sentence has no end: \"...{}\"", tail(text, 40))};
}

}  // namespace fullstop::judge
