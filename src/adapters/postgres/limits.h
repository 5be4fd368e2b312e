// Every queue and wait of the PostgreSQL store, in one table with its reason and what happens at
// the limit.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/time.h"

namespace fullstop::adapters::postgres {

// name                                   value                         at the limit
/// Name, socket, TLS and password together; a database in the same network answers in milliseconds.
///   not reachable
inline constexpr base::Duration kConnectTimeout = std::chrono::seconds(5);
/// Silence of the database while it owes a reply: longer than a checkpoint or a wait for a lock
/// takes.
///   the connection is given up
inline constexpr base::Duration kReplyTimeout = std::chrono::seconds(30);
/// How often a wait looks whether the program wants to end.
inline constexpr base::Duration kLookForEnd = std::chrono::milliseconds(50);
/// Records and readings that wait while the database is away or slow. A gateway's record is about 3
/// KiB: some twenty thousand answers; a probe's is its raw bytes, and a usual run fits whole.
///   those that come are refused, and counted
inline constexpr std::size_t kMaxWaitingBytes = 64 * 1024 * 1024;
/// Of them written in one transaction, of which each costs a wait for the disk. What it holds is
/// written twice when it breaks.
inline constexpr std::size_t kMaxBatchItems = 64;
inline constexpr std::size_t kMaxBatchBytes = 8 * 1024 * 1024;
/// From a failure to the next attempt: doubled each time, so that a database that starts is not
/// kept from it by us.
inline constexpr base::Duration kFirstPause = std::chrono::milliseconds(250);
inline constexpr base::Duration kLongestPause = std::chrono::seconds(10);
/// What waits at the end of a run or program has this long, a database that is just starting
/// included.
///   told, and lost
inline constexpr base::Duration kFlushTimeout = std::chrono::seconds(5);

}  // namespace fullstop::adapters::postgres
