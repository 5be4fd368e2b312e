// The real clock, from the system's two time lines.
#include "adapters/asio/clock.h"

#include <time.h>

#include "base/assert.h"

namespace fullstop::adapters::asio {
namespace {

std::int64_t read_ns(clockid_t id) {
    timespec ts{};
    FULLSTOP_ASSERT(clock_gettime(id, &ts) == 0, "the system has both clocks");
    return static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec;
}

}  // namespace

base::Instant SystemClock::now() const {
    return base::Instant(base::Duration(read_ns(CLOCK_MONOTONIC)));
}
base::WallTime SystemClock::wall() const { return {read_ns(CLOCK_REALTIME)}; }

}  // namespace fullstop::adapters::asio
