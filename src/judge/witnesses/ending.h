// The shape of an ending: is a sentence, list item, code fence or JSON document left open? A
// witness of completeness that does not trust the finish reason. Models differ, so callers compare
// with how the same model ends when alone.
#pragma once

#include <string>
#include <string_view>

namespace fullstop::judge {

struct Ending {
    bool open = false;
    /// A break that no model makes on purpose (fence, JSON): stronger than a missing full stop.
    bool structural = false;
    std::string what;  ///< "a sentence ends without punctuation: ...", empty when closed
};

Ending ending_of(std::string_view text);

/// Braces, brackets and strings of the JSON document that `text` holds are closed; true when it
/// holds none.
bool json_closed(std::string_view text);

}  // namespace fullstop::judge
