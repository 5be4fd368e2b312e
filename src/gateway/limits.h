// Every wait and size of the gateway, in one table with its reason and what happens at the limit. What the host bounds
// (request heads and bodies, a slow client's backlog, unsent bytes) stands in adapters/asio/limits.h, what one response
// may hold in wire/limits.h.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/time.h"

namespace fullstop::gateway {

// name                                   value                         at the limit
/// Silence of the upstream, its head included. The longest honest pauses known are below half a minute, but a long
/// prefill behind a queue is silent too; common gateways cut at 60 s.             error object, gateway_idle_timeout
inline constexpr base::Duration kDefaultIdle = std::chrono::minutes(5);
/// How long running answers may go on after SIGTERM.                               error object, gateway_deadline
inline constexpr base::Duration kDefaultDrain = std::chrono::seconds(30);
/// Identity sent by a client; longer ones do not fit a log line.                   400
inline constexpr std::size_t kMaxRequestIdBytes = 128;
/// Words of an upstream's error or of a broken connection that are repeated.       cut there
inline constexpr std::size_t kMaxDetailBytes = 300;

}  // namespace fullstop::gateway
