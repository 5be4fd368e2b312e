// The places of a regular expression, one for each character that it names, and the automaton that
// reads a text by them.
#pragma once

#include <bitset>
#include <expected>
#include <string>
#include <vector>

#include "schema/limits.h"
#include "schema/pattern/character_set.h"
#include "schema/pattern/text_pattern.h"

namespace fullstop::schema {

using PlaceSet = std::bitset<kMaxPatternPlaces>;

/// Glushkov's construction: a text is a walk from place to place.
struct Places {
    std::vector<CharacterSet> sets;  ///< what each place allows, merged()
    std::vector<PlaceSet> follow;    ///< which may come behind each
    PlaceSet first, last;            ///< where a text may begin and end
    bool may_be_empty = true;
};

/// Subset construction: a state is the set of places that the text so far may have come to. Errors:
/// the automaton is too large.
std::expected<TextPattern, std::string> automaton_of(const Places& places, std::size_t& work);

}  // namespace fullstop::schema
