// How fast a server is for one of several users: a few short real answers at each number of users, and the medians. For
// deadlines only; a probe measures far more.
#pragma once

#include <vector>

#include "base/result.h"
#include "cli/deadline_table.h"
#include "wire/request_text.h"

namespace fullstop::cli {

/// Long enough that the pace of tokens shows, short enough that 15 answers take seconds.
inline constexpr int kTrialTokens = 64;

/// Errors: unreachable, when the server cannot be reached or no answer came at some number of users.
base::Result<std::vector<Speed>> measure_speed(const wire::ServerUrl& url, const wire::Headers& headers, const std::vector<int>& users);

}  // namespace fullstop::cli
