// Host memory that holds KV, of paused answers and of ended ones: a budget and what of it is used.
// The bytes themselves live with their owners.
#pragma once

#include "base/assert.h"
#include "base/units.h"

namespace fullstop::engine {

class HostMemory {
public:
    explicit HostMemory(base::Bytes total) : total_(total) {}

    bool can_hold(base::Bytes bytes) const { return used_ + bytes <= total_; }
    void hold(base::Bytes bytes) {
        FULLSTOP_ASSERT(can_hold(bytes), "snapshots fit their budget");
        used_ += bytes;
    }
    void free(base::Bytes bytes) {
        FULLSTOP_ASSERT(bytes <= used_, "only what is held is freed");
        used_ -= bytes;
    }

    base::Bytes used() const { return used_; }
    base::Bytes total() const { return total_; }

private:
    base::Bytes total_, used_;
};

}  // namespace fullstop::engine
