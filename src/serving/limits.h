// What everybody who serves answers takes of a client's identity, in one table with its reason and
// what happens at the limit.
#pragma once

#include <cstddef>

namespace fullstop::serving {

// name                                   value                         at the limit
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

}  // namespace fullstop::serving
