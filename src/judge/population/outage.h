// A server that died: answers broke or ended in an error, and what was tried after that was refused
// or answered with an error before any text, while nothing that it had begun before was answered
// any more. The refusals belong to the concurrency at which it died, however late and at whatever
// level they were seen. Refuted by any answer that went on between the break and the refusal.
#pragma once

#include <map>
#include <vector>

#include "answer/record.h"

namespace fullstop::judge {

struct Outage {
    int concurrency = 1;  ///< under which the server died
    /// The answer that tells most of the death: one with an error, else the last that broke.
    const answer::Record* death = nullptr;
};

/// Of broken and refused answers of outages.
using Outages = std::map<const answer::Record*, Outage>;

/// `answers`: all of one arm, of every level. Untimed answers are passed over.
Outages outages_of(const std::vector<const answer::Record*>& answers);

/// Refused, or answered with a failing status before any text.
bool is_turned_away(const answer::Record& record);

}  // namespace fullstop::judge
