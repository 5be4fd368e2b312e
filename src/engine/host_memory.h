// Host memory that holds the KV of paused answers: a budget and what of it is used. The bytes themselves live with their
// sequences.
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
        out_ += bytes;
    }
    /// `back`: they went back into KV, and were not given up.
    void free(base::Bytes bytes, bool back) {
        FULLSTOP_ASSERT(bytes <= used_, "only what is held is freed");
        used_ -= bytes;
        if (back) in_ += bytes;
    }

    base::Bytes used() const { return used_; }
    base::Bytes total() const { return total_; }
    base::Bytes swapped_out() const { return out_; }  ///< in all
    base::Bytes swapped_in() const { return in_; }    ///< in all

private:
    base::Bytes total_, used_, out_, in_;
};

}  // namespace fullstop::engine
