// The keyword `pattern` of a JSON Schema: a regular expression (ECMA-262) for a whole text, as an
// automaton in which each next character leads to one state. So libllama, which follows every way
// to read what was written so far, has one way to follow; a pattern written out as a grammar would
// have as many as its repetitions allow, and each token would cost their product.
//
// Taken are literals, classes, ., \d \w \s and their opposites, groups, alternatives and
// repetitions between ^ and $. Everything else is an error: look-around, back references and
// unanchored patterns cannot be held to while a text is written. So is a pattern whose automaton is
// too large (limits.h). Characters that JSON has to escape are written as \" and \\; control
// characters are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace fullstop::schema {

struct TextPattern {
    struct Way {
        std::string character;  ///< GBNF of one character within the quotes of a JSON text
        std::size_t to = 0;     ///< the state behind it
    };
    struct State {
        bool ends = false;  ///< the text may end here
        std::vector<Way> ways;
    };
    std::vector<State> states;  ///< the first is the beginning
    std::int64_t widest =
        0;  ///< most ways to begin a next character of any state, its end among them
};
/// Errors: what of the pattern is not taken. `work` is what may still be spent on automata, in ends
/// of ranges looked at.
std::expected<TextPattern, std::string> read_pattern(std::string_view pattern, std::size_t& work);

}  // namespace fullstop::schema
