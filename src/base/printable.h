// What others wrote (a server, a client, a model, a file), as it may stand on a terminal, in a log
// line or in a report. Every stream of ours passes such text through here: nothing in it drives a
// terminal, reorders or hides what stands beside it.
#pragma once

#include <string>
#include <string_view>

namespace fullstop::base {

/// On one line: line breaks and tabs become spaces. Other control characters (C0, C1, DEL), marks
/// that reorder or hide text become visible as \x1b, \u202e; what is no UTF-8 becomes U+FFFD.
/// printable(printable(x)) is printable(x).
std::string printable(std::string_view text);

/// The same, and each line break stays.
std::string printable_lines(std::string_view text);

/// False for control characters, non-characters, and the marks that reorder or hide text.
bool is_printable(char32_t code);

}  // namespace fullstop::base
