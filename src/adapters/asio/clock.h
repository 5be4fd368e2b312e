// The real clock: CLOCK_MONOTONIC for measuring, CLOCK_REALTIME for names and dates.
#pragma once

#include "base/time.h"

namespace fullstop::adapters::asio {

class SystemClock final : public base::Clock {
public:
    base::Instant now() const override;
    base::WallTime wall() const override;
};

}  // namespace fullstop::adapters::asio
