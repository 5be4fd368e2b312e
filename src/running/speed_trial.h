// How fast a server is for one of several users: a few short real answers at each number of users,
// and the medians. For deadlines only; a probe measures far more.
#pragma once

#include <vector>

#include "base/result.h"
#include "wire/http/request_text.h"

namespace fullstop::running {

/// How fast answers are with so many users: what one of them sees.
struct Speed {
    int users = 1;
    double tokens_per_second = 0;
    double first_token_s = 0;
};

/// Long enough that the pace of tokens shows, short enough that 15 answers take seconds.
inline constexpr int kTrialTokens = 64;

/// Errors: unreachable, when the server cannot be reached or no answer came at some number of
/// users.
base::Result<std::vector<Speed>> measure_speed(const wire::ServerUrl& url,
                                               const wire::Headers& headers,
                                               const std::vector<int>& users);

}  // namespace fullstop::running
