// Every wait and size towards the store, in one table with its reason and what happens at the
// limit.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/time.h"

namespace fullstop::adapters::redis {

// name                                   value                         at the limit
/// A reply of the script has four numbers, an error one line.
///   the connection is given up
inline constexpr std::size_t kMaxReplyBytes = std::size_t{16} << 10;
inline constexpr std::size_t kMaxReplyElements = 16;
/// A reservation whose gateway says nothing for so long belongs to a dead one.
///   it counts as spent for one window more
inline constexpr base::Duration kLease = std::chrono::seconds(60);
/// A third of it: one renewal may be lost.
inline constexpr base::Duration kRenewAfter = kLease / 3;
/// Settlements under way or waiting for a store that is away: an hour at three answers a second,
/// 6 MB.
///   the oldest are forgotten, counted in a metric; their reservations then run out and count in
///   full
inline constexpr std::size_t kMaxKeptSettles = 10'000;
/// Settlements and renewals on the wire at once: they come in bursts after a loss, and must not
/// keep a request waiting.
inline constexpr std::size_t kMaxOnTheWire = 64;
/// A settlement that the store answers with an error.
///   forgotten after so many, and counted
inline constexpr int kMaxSettleErrors = 3;
/// Pauses between attempts to connect, doubling.
inline constexpr base::Duration kFirstPause = std::chrono::milliseconds(100),
                                kLongestPause = std::chrono::seconds(5);
/// A connection that lasted so long was a good one: after its loss the store is tried at once.
inline constexpr base::Duration kGoodConnection = std::chrono::seconds(1);
/// Words of the store's errors that are repeated.
///   cut there
inline constexpr std::size_t kMaxErrorWords = 120;

}  // namespace fullstop::adapters::redis
