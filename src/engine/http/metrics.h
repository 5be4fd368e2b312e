// What the engine did so far, as Prometheus text: load, KV, ends by cause, and how long tokens
// took.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "answer/cause.h"
#include "base/time.h"
#include "engine/answer_end.h"

namespace fullstop::engine {

/// Counts per upper bound, as Prometheus wants them.
class Histogram {
public:
    explicit Histogram(std::vector<double> bounds)
        : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
    void add(double value);
    void write(std::string& out, std::string_view name, std::string_view help) const;

private:
    std::vector<double> bounds_;
    std::vector<std::int64_t> counts_;  ///< one more than bounds: above all of them
    double sum_ = 0;
};

class Metrics {
public:
    void token(const Produced& produced);
    /// Every answer once, refusals included.
    void ended(const AnswerEnd& end);

    std::string text(const Occupancy& occupancy, std::int64_t slots) const;
    const std::map<answer::Cause, std::int64_t>& ends() const { return ends_; }

private:
    // Bounds in seconds: from one step of a small model to the longest waits that clients endure.
    Histogram ttft_{{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}};
    Histogram gaps_{{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}};
    Histogram estimates_{{0.25, 0.5, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 4}};
    Histogram queue_{{0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}};
    std::map<answer::Cause, std::int64_t> ends_;
    std::int64_t prompt_tokens_ = 0, output_tokens_ = 0;
};

}  // namespace fullstop::engine
