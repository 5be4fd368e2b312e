// What happens when in a simulation, one JSON object a line: the same seed writes the same bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "simulator/capacity/serving_run.h"
#include "simulator/capacity/sweep.h"

namespace fullstop::simulator {

/// Grows as settings are simulated; at kMaxEventBytes nothing more is added and the last line says
/// so.
class EventLines {
public:
    void begin(const Setting& setting);
    /// Functions that write down what they are told; `this` outlives them.
    ServingRun::Watch watch();
    const std::string& text() const { return text_; }

private:
    void add(std::string_view line);

    std::string text_;
    std::int64_t step_ = 0;
    bool full_ = false;
};

/// A million tokens are about 100 MB of steps; this is kept in memory until it is written.   the
/// last line says "truncated"
inline constexpr std::size_t kMaxEventBytes = 1024UL * 1024 * 1024;

}  // namespace fullstop::simulator
