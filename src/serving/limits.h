// What everybody who serves answers takes and tells, in one table with its reason and what happens
// at the limit.
#pragma once

#include <cstddef>

namespace fullstop::serving {

/// Identity sent by a client; longer ones do not fit a log line.
///   400
inline constexpr std::size_t kMaxRequestIdBytes = 128;
/// One API key; generated ones have 32 to 64 characters.
///   usage error
inline constexpr std::size_t kMaxApiKeyBytes = 512;
/// The name of a client, which stands in metrics and logs.
///   usage error
inline constexpr std::size_t kMaxClientNameBytes = 64;
/// A file of keys: thousands of lines.
///   usage error
inline constexpr std::size_t kMaxKeyFileBytes = std::size_t{1} << 20;
/// Words of an error; they may repeat what a client, a file or an upstream wrote.
///   cut there
inline constexpr std::size_t kMaxMessageBytes = 1024;
/// Clients whose tokens are counted, for fairness and budgets; one entry is about 100 bytes.
///   those that ask nothing now, or have used the least, are forgotten
inline constexpr std::size_t kMaxClients = 10'000;

}  // namespace fullstop::serving
