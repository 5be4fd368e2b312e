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

/// Distinct list items ("- ", "* ", "1.") with text.
int list_items(std::string_view text);

}  // namespace fullstop::judge
