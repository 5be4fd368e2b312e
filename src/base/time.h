// Time as parts see it: a monotonic instant handed in with each event. No part reads a clock; a
// host owns one.
#pragma once

#include <chrono>
#include <cstdint>

namespace fullstop::base {

using Duration = std::chrono::nanoseconds;

/// Tag of the monotonic time line (CLOCK_MONOTONIC in a real host, virtual in the simulator). It
/// has no now().
struct Monotonic {
    using rep = Duration::rep;
    using period = Duration::period;
    using duration = Duration;
    using time_point = std::chrono::time_point<Monotonic>;
    static constexpr bool is_steady = true;
};
using Instant = Monotonic::time_point;

/// Nanoseconds since the Unix epoch, UTC. For names and dates only, never for measuring.
struct WallTime {
    std::int64_t unix_ns = 0;
};

/// Implemented by the hosts: adapters/asio (real) and simulator (virtual). Handed to rims, never to
/// parts.
class Clock {
public:
    virtual ~Clock() = default;
    virtual Instant now() const = 0;
    virtual WallTime wall() const = 0;
};

constexpr double to_ms(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
constexpr double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
constexpr Duration from_ms(double ms) { return Duration(static_cast<std::int64_t>(ms * 1e6)); }

}  // namespace fullstop::base
