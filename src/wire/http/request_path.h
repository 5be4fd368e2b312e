// Which page does the target of a request mean? Servers read many spellings as one path (escapes,
// `//`, `/./`, `;x`, a slash at the end, the absolute form), so whoever decides by the path decides
// on one normal form of it, and sends that one on. What servers read in different ways is an error:
// there is nothing to decide on.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace fullstop::wire {

struct RequestPath {
    /// Begins with '/' and does not end with one, except "/" itself; or "*". Visible ASCII: an
    /// escape stands only where a character needs one.
    std::string path;
    std::string query;  ///< as it was sent, without its '?'

    std::string target() const { return query.empty() ? path : path + "?" + query; }
};

/// The normal form of `target`. The error is a sentence for the client (400); it repeats nothing of
/// the target.
std::expected<RequestPath, std::string> normal_path(std::string_view target);

}  // namespace fullstop::wire
