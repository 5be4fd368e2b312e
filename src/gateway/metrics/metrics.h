// What the gateway did so far, as Prometheus text: answers by cause and upstream, what runs and
// waits, what was relayed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "answer/cause.h"
#include "base/time.h"
#include "gateway/metrics/genai_metrics.h"
#include "gateway/placement/placement.h"
#include "gateway/placement/queue.h"
#include "net/memory_budget.h"
#include "serving/prometheus_text.h"

namespace fullstop::gateway {

/// Of answers, and of what is kept of them.
struct RecordCounts {
    std::int64_t seen = 0;
    std::int64_t waiting = 0;  ///< not written yet
    std::int64_t lost = 0;     ///< and never will be
};
std::string memory_text(const net::MemoryBudget& memory);
std::string records_text(const RecordCounts& counts);

/// What runs is named apart from `serve`'s gauge: whoever reads it through a gateway would take it
/// for the server's.
class Metrics {
public:
    /// `upstream` is "" for what was never passed on.
    void answer(answer::Cause cause, const std::string& upstream) { ++ends_[{upstream, cause}]; }
    void other(const std::string& upstream) {
        ++others_[upstream];
    }  ///< no answer of a model: models, health, tokens
    void relayed(const std::string& upstream, std::size_t bytes) {
        bytes_[upstream] += static_cast<std::int64_t>(bytes);
    }
    void waited(Priority priority, base::Duration time);
    void retried(const std::string& upstream) { ++retries_[upstream]; }
    void continued(std::size_t seams) { continued_ += static_cast<std::int64_t>(seams); }
    void fault() { ++faults_; }     ///< of this gateway, which ended an exchange
    void limited() { ++limited_; }  ///< its token limit was lowered
    void genai(const answer::Record& record, const GenAiMetrics::Ended& ended) {
        genai_.answer(record, ended);
    }

    std::string text(const Upstreams& upstreams, const Queue& queue, std::size_t exchanges,
                     base::Instant now) const;
    std::map<answer::Cause, std::int64_t> ends() const;
    std::int64_t others() const;

private:
    /// Up to the longest wait that a person takes for one, and beyond.
    static constexpr std::array<double, 10> kWaitBounds = {0.01, 0.1, 0.5, 1,  2,
                                                           5,    10,  30,  60, 300};
    void write_upstreams(std::string& out, const Upstreams& upstreams, base::Instant now) const;
    void write_queue(std::string& out, const Queue& queue) const;

    std::map<std::pair<std::string, answer::Cause>, std::int64_t> ends_;
    std::map<std::string, std::int64_t> others_, bytes_, retries_;
    std::array<serving::Histogram, kPriorities> waits_ = {serving::Histogram(kWaitBounds),
                                                          serving::Histogram(kWaitBounds),
                                                          serving::Histogram(kWaitBounds)};
    GenAiMetrics genai_;
    std::int64_t limited_ = 0, continued_ = 0, faults_ = 0;
};

}  // namespace fullstop::gateway
