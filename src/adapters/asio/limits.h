// Every queue, buffer and wait of the real host, in one table with its reason and what happens at
// the limit. Those of the exchange itself (connect, head, silence, capture) are net/limits.h: parts
// decide them.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/time.h"

namespace fullstop::adapters::asio {

/// A resolver that answers later than this is broken; the connect limit still applies on top.
///   ConnectFailed{kResolve}
inline constexpr base::Duration kResolveTimeout = std::chrono::seconds(5);
/// Turns that those who share a loop take in a row, of what one event led to: hundreds of times
/// what an ordinary one does.
///   sockets and timers get theirs first
inline constexpr int kMaxTurnsInARow = 10'000;
/// Reads of one connection before the others get their turn (128 KiB in a row).
///   the rest is read in the next turn
inline constexpr int kReadsPerTurn = 8;
/// Bytes a part may have handed to one connection and the kernel not yet taken. The largest prompt
/// is below 1 MiB.
///   the connection is reset
inline constexpr std::size_t kMaxUnsentBytes = 64 * 1024 * 1024;
/// Idle connections to servers, of all endpoints: as nginx's examples keep.
///   the oldest is closed
inline constexpr std::size_t kMaxIdleConnections = 512;
/// Below the 5 s after which llama-server, uvicorn and Node close an idle connection themselves:
/// better we than they, because a request may cross their close.
///   closed
inline constexpr base::Duration kIdleUpstreamTimeout = std::chrono::seconds(4);
/// llama-server closes unannounced behind each streamed answer, and on a busy machine its close is
/// late: a request that was sent meanwhile would be lost. Who still keeps a connection after this
/// means to keep it.
///   a fresh one is opened
inline constexpr base::Duration kReuseAfter = std::chrono::milliseconds(200);

/// Request head of a served request. Real ones are below 4 KiB; proxies add a few KiB.
///   431 and close
inline constexpr std::size_t kMaxRequestHeadBytes = 32 * 1024;
/// Request body: a 128k-token prompt in JSON is about 1 MiB.
///   413 and close
inline constexpr std::size_t kMaxRequestBodyBytes = 8 * 1024 * 1024;
/// What one connection may hold without being counted in the budget that all share
/// (net::kMaxHeldBytes): an ordinary request's head, so that a page like /health needs no room. 40
/// MiB for the most connections.
inline constexpr std::size_t kUncountedBytes = 4 * 1024;
/// Response bytes waiting for one slow client, beyond the kernel's own buffers: thousands of
/// events. A client that far behind will not catch up, and must not cost the others memory.
///   reset, client_left
inline constexpr std::size_t kMaxResponseBacklogBytes = 4 * 1024 * 1024;
/// Of those, when a service is told that its client lags, so that it may pause its source; told
/// again at a quarter of it.
inline constexpr std::size_t kLagBytes = 256 * 1024;
/// Bytes of a next request that wait while an answer runs; the kernel's buffer holds what follows.
///   reading pauses
inline constexpr std::size_t kMaxEarlyBytes = 16 * 1024;
/// Served connections at once: ten times the largest concurrency level of a probe, at 1.3 KiB each
/// while idle (measured); fewer where the process may not open two descriptors for each.
///   the one longest without a whole request is closed; if none, accepting pauses
inline constexpr std::size_t kMaxServedConnections = 10'000;
/// Descriptors left for everything else.
inline constexpr std::size_t kReservedDescriptors = 64;
/// From the first byte of a request to its last: a slow sender holds a connection no longer.
///   408 and close
inline constexpr base::Duration kRequestTimeout = std::chrono::seconds(30);
/// A kept connection without a next request.
///   closed
inline constexpr base::Duration kIdleConnectionTimeout = std::chrono::minutes(2);
/// After our FIN: how long a client's unread bytes are drained so that it still sees the answer.
/// closed
inline constexpr base::Duration kLingerTimeout = std::chrono::seconds(2);
/// A finished response of which the client takes nothing more.
///   reset
inline constexpr base::Duration kFlushTimeout = std::chrono::seconds(30);
/// Pause after accept() failed for want of descriptors or memory.
///   tried again
inline constexpr base::Duration kAcceptPause = std::chrono::milliseconds(100);

/// One line of a child's output; longer ones are cut here and go on as the next line.
inline constexpr std::size_t kMaxChildLineBytes = 64 * 1024;
/// Lines of a child's output that nobody has read.
///   oldest are dropped
inline constexpr std::size_t kMaxChildLines = 1024;
/// Last bytes of a child's error output, kept to say why it died.
///   oldest are dropped
inline constexpr std::size_t kChildErrorBytes = 64 * 1024;
/// From SIGTERM to SIGKILL, unless the caller says otherwise.
///   SIGKILL
inline constexpr base::Duration kChildEndTimeout = std::chrono::seconds(5);

}  // namespace fullstop::adapters::asio
