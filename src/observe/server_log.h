// What a server's or proxy's own log said while it was probed: known sentences, counted. A log line
// is a hint that joins the evidence; it is never needed, and its absence proves nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "answer/cause.h"

namespace fullstop::observe {

struct LogSign {
    std::string_view sentence;  ///< as it stands in the log
    answer::Cause cause;        ///< what it speaks for
    int count = 0;
    std::string first_line;  ///< the first line with it, at most 300 bytes
};

/// Every known sentence that occurs in `text`, most frequent first.
std::vector<LogSign> read_log(std::string_view text);

/// For people: "the server's log says 14 times 'Context size has been exceeded'
/// (kv_pool_exhausted)".
std::string describe(const LogSign& sign);

}  // namespace fullstop::observe
