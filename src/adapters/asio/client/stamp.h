// When did these bytes arrive? The kernel stamps each TCP segment (SO_TIMESTAMPING, software
// receive), before our thread is even woken; but on the wall clock. This file brings such a stamp
// to the monotonic line, and refuses it when a step of the wall clock may lie between stamp and
// reading. A read of several segments carries the stamp of the last one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/time.h"

namespace fullstop::adapters::asio {

/// Both clocks at one moment; they were read within `doubt` of each other.
struct ClockPair {
    base::Instant monotonic;
    std::int64_t real_ns = 0;
    base::Duration doubt{};
};
ClockPair read_clock_pair();

/// Owned by one host; not thread-safe.
class StampConverter {
public:
    /// Call before the first stamp can come, so that every stamp has a reading on both of its
    /// sides.
    void note(const ClockPair& now);
    /// The stamp on the monotonic line, never later than `now`; or nothing, when the wall clock
    /// stepped since, or when the stamp lies before the first reading.
    std::optional<base::Instant> convert(std::int64_t stamp_real_ns, const ClockPair& now);

private:
    std::optional<ClockPair> last_;
    base::Instant steady_since_;  ///< no step of the wall clock was seen from here to last_
};

/// Asks the kernel to stamp what `fd` receives. False when it cannot; reads then carry no stamp.
bool enable_receive_stamps(int fd);

/// The kernel switches stamping on with the first socket that asks for it, a moment later, and off
/// with the last. While a keeper lives it stays on; the constructor returns once a datagram to
/// ourselves was stamped (at most kWarmUp later), so that the first bytes of a run are stamped too.
class StampKeeper {
public:
    explicit StampKeeper(bool wanted);
    ~StampKeeper();
    StampKeeper(const StampKeeper&) = delete;
    StampKeeper& operator=(const StampKeeper&) = delete;

private:
    static constexpr base::Duration kWarmUp = std::chrono::milliseconds(20);
    int fd_ = -1;
};

/// recv() that also tells the kernel's stamp (wall clock, 0: none). Returns as recv(); never raises
/// SIGPIPE, restarts on EINTR.
std::int64_t receive(int fd, std::span<char> into, std::int64_t& stamp_real_ns);
/// The same without a stamp, for less.
std::int64_t receive(int fd, std::span<char> into);

}  // namespace fullstop::adapters::asio
