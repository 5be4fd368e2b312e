// How much is asked of a server about itself, each limit with its reason; waits and body sizes
// stand in net/limits.h.
#pragma once

#include <cstddef>

namespace fullstop::observe {

// name                                   value                         at the limit
/// Verbatim text kept of one endpoint for judging again; /props with its chat template is 10 kB,
/// vLLM's /metrics 60 kB. cut there
inline constexpr std::size_t kMaxRawBytes = 64 * 1024;
/// Endpoints that accept and never answer; a server with two such is not asked further.
///   the rest becomes unavailable
inline constexpr int kMaxSilentEndpoints = 2;
/// Further counters of one sample; vLLM has about 40 that matter.
///   later names are dropped
inline constexpr std::size_t kMaxCounters = 96;
/// Rounds in a row in which an endpoint did not answer before it is asked less often.
///   asked every tenth round
inline constexpr int kPatience = 3;
inline constexpr int kSlowRounds = 10;
/// Names and versions; the longest real ones are paths of 200 bytes.
///   cut there
inline constexpr std::size_t kMaxNameBytes = 512;
/// Start of a body that stands in a message.
///   cut there
inline constexpr std::size_t kMaxQuotedBytes = 120;

}  // namespace fullstop::observe
