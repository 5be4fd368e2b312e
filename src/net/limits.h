// Every queue, buffer and wait of the client side, and what both sides together hold, in one table
// with its reason and what happens at the limit. How much of a response is kept stands in
// wire/limits.h.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/time.h"

namespace fullstop::net {

// name                                   value                         at the limit
/// Connecting to a LAN or loopback server takes milliseconds; past this it is down.
///   ConnectFailed{kTimedOut}
inline constexpr base::Duration kConnectTimeout = std::chrono::seconds(10);
/// Questions to /props, /metrics and the like: a busy server may answer late.
///   fact becomes unavailable
inline constexpr base::Duration kObserveTimeout = std::chrono::seconds(5);
/// A server that accepted and never sent a head. Queues of minutes are legitimate.
///   record ends timed_out
inline constexpr base::Duration kHeadTimeout = std::chrono::minutes(15);
/// Silence inside a body; the longest honest pause known is 28 s (preemption).
///   record ends timed_out
inline constexpr base::Duration kSilenceTimeout = std::chrono::minutes(15);
/// Body of a question to a server's own endpoints.
///   fact becomes unavailable
inline constexpr std::size_t kMaxObserveBytes = 4 * 1024 * 1024;
/// Concurrency level of a probe; one connection each.
///   usage error
inline constexpr int kMaxConcurrency = 1024;
/// One read from a socket.
inline constexpr std::size_t kReadBytes = 16 * 1024;

/// Held for others by the process (memory_budget.h): a thousand ordinary requests at once, or two
/// dozen of the largest; a small machine runs a gateway beside its model.
///   the largest that is idle is dropped; then who asks for much gets 503
inline constexpr std::size_t kMaxHeldBytes = 256 * 1024 * 1024;
/// Needs little: a question of some thousand tokens. The last quarter of the budget is for such,
/// and they are not refused for others' sake while somebody can be dropped.
inline constexpr std::size_t kSmallHoldBytes = 64 * 1024;
/// Who moved less than kMovedBytes in kIdleHold is idle: 16 KiB/s is a modem's pace. Matters only
/// when the budget is used up.
inline constexpr std::size_t kMovedBytes = 16 * 1024;
inline constexpr base::Duration kIdleHold = std::chrono::seconds(1);

}  // namespace fullstop::net
