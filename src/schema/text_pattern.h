// The keyword `pattern` of a JSON Schema: a regular expression (ECMA-262) for a whole text, as a grammar of that text within
// its JSON quotes.
//
// Taken are literals, classes, ., \d \w \s and their opposites, groups, alternatives and repetitions between ^ and $. Everything
// else is an error: look-around, back references and unanchored patterns cannot be held to while a text is written. Characters
// that JSON has to escape are written as \" and \\; control characters are left out.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace fullstop::schema {

struct TextPattern {
    std::string grammar;         ///< in GBNF, without brackets around it and without the quotes of JSON
    std::int64_t positions = 0;  ///< places of the pattern, repetitions counted: so many may have to be followed at once
};
/// Errors: what of the pattern is not taken.
std::expected<TextPattern, std::string> read_pattern(std::string_view pattern);

}  // namespace fullstop::schema
