// A server that died: answers broke, and the connections tried after that were refused, while
// nothing that it had begun before was answered any more. The refusals belong to the concurrency at
// which it died, however late and at whatever level they were seen. Refuted by any answer that went
// on between the break and the refusal.
#pragma once

#include <map>
#include <vector>

#include "answer/record.h"

namespace fullstop::judge {

/// Broken and refused answers of outages -> the concurrency under which the server died.
using Outages = std::map<const answer::Record*, int>;

/// `answers`: all of one arm, of every level. Untimed answers are passed over.
Outages outages_of(const std::vector<const answer::Record*>& answers);

}  // namespace fullstop::judge
