// What the engine did so far, as Prometheus text: load, KV, ends by cause, and how long tokens
// took.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "answer/cause.h"
#include "base/time.h"
#include "engine/answer_end.h"
#include "serving/prometheus_text.h"

namespace fullstop::engine {

class Metrics {
public:
    void token(const Produced& produced);
    /// Every answer once, refusals included.
    void ended(const AnswerEnd& end);

    std::string text(const Occupancy& occupancy, std::int64_t slots) const;
    const std::map<answer::Cause, std::int64_t>& ends() const { return ends_; }

private:
    // Bounds in seconds: from one step of a small model to the longest waits that clients endure.
    static constexpr std::array kTtft = {0.05, 0.1,  0.25, 0.5,  1.0,   2.5,
                                         5.0,  10.0, 30.0, 60.0, 120.0, 300.0};
    static constexpr std::array kGaps = {0.01, 0.025, 0.05, 0.1,  0.25, 0.5,
                                         1.0,  2.5,   5.0,  10.0, 30.0};
    static constexpr std::array kEstimates = {0.25, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0};
    static constexpr std::array kQueue = {0.001, 0.01, 0.1,  0.5,  1.0,   2.5,
                                          5.0,   10.0, 30.0, 60.0, 120.0, 300.0};
    serving::Histogram ttft_{kTtft}, gaps_{kGaps}, estimates_{kEstimates}, queue_{kQueue};
    std::map<answer::Cause, std::int64_t> ends_;
    std::int64_t prompt_tokens_ = 0, output_tokens_ = 0;
};

}  // namespace fullstop::engine
