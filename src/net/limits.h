// Every queue, buffer and wait of the client side, in one table with its reason and what happens at the limit.
// How much of a response is kept stands in wire/limits.h.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/time.h"

namespace fullstop::net {

// name                                   value                         at the limit
/// Connecting to a LAN or loopback server takes milliseconds; past this it is down.   ConnectFailed{kTimedOut}
inline constexpr base::Duration kConnectTimeout = std::chrono::seconds(10);
/// Questions to /props, /metrics and the like: a busy server may answer late.         fact becomes unavailable
inline constexpr base::Duration kObserveTimeout = std::chrono::seconds(5);
/// A server that accepted and never sent a head. Queues of minutes are legitimate.    record ends timed_out
inline constexpr base::Duration kHeadTimeout = std::chrono::minutes(15);
/// Silence inside a body; the longest honest pause known is 28 s (preemption).        record ends timed_out
inline constexpr base::Duration kSilenceTimeout = std::chrono::minutes(15);
/// Body of a question to a server's own endpoints.                                    fact becomes unavailable
inline constexpr std::size_t kMaxObserveBytes = 4 * 1024 * 1024;
/// Concurrency level of a probe; one connection each.                                 usage error
inline constexpr int kMaxConcurrency = 1024;
/// One read from a socket.
inline constexpr std::size_t kReadBytes = 16 * 1024;

}  // namespace fullstop::net
