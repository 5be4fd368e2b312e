// Waits and rounds of the experiment that are its own, each with its reason; those of a connection
// stand in net/limits.h.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/time.h"

namespace fullstop::probe {

// name                                   value                         at the limit
/// Answers that still run when the budget ends may take a tenth of it; in short runs a quarter, up
/// to 30 s, and at least 5 s. closed by us, a note says how many
inline constexpr base::Duration kLeastGrace = std::chrono::seconds(5);
inline constexpr int kGraceShare = 10;
inline constexpr int kQuarter = 4;
inline constexpr base::Duration kMostOfShortRuns = std::chrono::seconds(30);
/// Batches beyond the plan. a note says what was missing
inline constexpr int kMaxBatches = 8;
/// Share of the budget after which a slow server's plan is trimmed although not every prompt has
/// been seen yet.
inline constexpr int kEarlyTrimShare = 5;
/// Below this many prompts a plan is not shrunk: the kinds of answers would no longer be covered.
inline constexpr std::size_t kLeastPrompts = 4;
/// Tokens of an average answer over its limit, before anything was measured: built-in prompts on
/// two models, 0.3 to 0.5.
inline constexpr double kExpectedShare = 0.5;
/// What "left to the server" counts as when estimating.
inline constexpr int kTokensWhenOmitted = 512;

}  // namespace fullstop::probe
