// The records of a gateway's answers in a store, as one run that lasts from start to end: the same
// store and form as a probe's, so that what a client saw and what the gateway saw of one answer are
// found by one request id.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "answer/record.h"
#include "base/result.h"
#include "cli/gateway/gateway_config.h"
#include "cli/world.h"
#include "gateway/metrics/metrics.h"

namespace fullstop::cli {

class Journal {
public:
    /// `given` as in --store; empty or "none": nothing is kept. Errors: as the store's.
    static base::Result<Journal> open(const World& world, const std::string& given,
                                      const GatewaySettings& settings);
    Journal(Journal&&) noexcept;
    Journal& operator=(Journal&&) noexcept;
    ~Journal();

    /// Takes an answer down; empty when nothing is kept. A store that fails is said once, and the
    /// relay goes on.
    std::function<void(const answer::Record&)> keeper();
    /// For /metrics; empty when nothing is kept.
    std::function<gateway::RecordCounts()> counts();
    /// To be called now and then: says that the store is away, and that it is back.
    void look();
    /// Waits a moment for what has not been written; says what is missing.
    void close();

private:
    struct State;
    explicit Journal(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace fullstop::cli
