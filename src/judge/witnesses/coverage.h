// How much of what the prompt asked for is there, 0 to 1 (contract section 4). A witness of
// completeness that knows the question; it is compared with the coverage of the same prompt alone,
// never with 1.
#pragma once

#include <optional>
#include <string_view>

#include "answer/request.h"

namespace fullstop::judge {

/// Mean over the parts of the check; absent when the check is empty. A pattern that cannot be run
/// counts as absent.
std::optional<double> coverage_of(std::string_view text, const answer::Check& check);

/// +1: `text` lacks the end of what the check asks for and `other` has it: its last fact, item or
/// closing part lies a quarter or more before the other's, and up to there it misses no more. -1:
/// the other way round; 0 else.
int missing_tail(std::string_view text, std::string_view other, const answer::Check& check);

/// The last quarter of what the check asks for is not there: facts, items or the closing part.
bool unfinished(std::string_view text, const answer::Check& check);

/// Distinct list items ("- ", "* ", "1.") with text.
int list_items(std::string_view text);

}  // namespace fullstop::judge
