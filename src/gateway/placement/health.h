// Whether an upstream is worth a request, judged by what happened to the last ones before their
// first byte. The upstream is not probed: after some failures in a row it gets no requests for a
// pause, then one request tries it.
#pragma once

#include <algorithm>
#include <utility>

#include "base/time.h"
#include "gateway/limits.h"

namespace fullstop::gateway {

class Health {
public:
    void succeeded() { failures_ = 0, trying_ = false, pause_ = kFirstPause; }
    void failed(base::Instant now) {
        const bool trial = std::exchange(trying_, false);
        if (++failures_ < kFailuresToOpen) return;
        if (trial) pause_ = std::min(pause_ * 2, kLongestPause);
        until_ = now + pause_;
    }
    /// One request takes the trial; until it has ended no second one does.
    void began() { trying_ = failures_ >= kFailuresToOpen; }
    /// The trial ended without telling anything: its client left.
    void abandoned() { trying_ = false; }

    bool open() const { return failures_ >= kFailuresToOpen; }  ///< left alone, or tried by one
    bool usable(base::Instant now) const { return !open() || (now >= until_ && !trying_); }
    base::Instant until() const { return until_; }

private:
    int failures_ = 0;  ///< in a row
    bool trying_ = false;
    base::Duration pause_ = kFirstPause;
    base::Instant until_{};
};

}  // namespace fullstop::gateway
