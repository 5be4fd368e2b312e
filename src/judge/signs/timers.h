// Time-outs that products ship with, and which of them a measured time hits.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace fullstop::judge {

struct KnownTimer {
    double seconds;
    std::string_view who;
};

/// Limits on silence between bytes.
std::span<const KnownTimer> idle_timers();
/// Limits on a whole exchange.
std::span<const KnownTimer> total_timers();

/// The timer that `ms` hits: not before it, and at most 1 s or 2 % later (a timer fires late, never
/// early; clocks of two machines may differ by a few milliseconds).
std::optional<KnownTimer> hit(std::span<const KnownTimer> timers, double ms);

}  // namespace fullstop::judge
