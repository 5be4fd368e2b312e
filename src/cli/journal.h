// The records of a gateway's answers in a store, as one run that lasts from start to end: the same file and form as a probe's,
// so that what a client saw and what the gateway saw of one answer are found by one request id.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "answer/record.h"
#include "base/result.h"
#include "cli/gateway_config.h"
#include "cli/world.h"

namespace fullstop::cli {

class Journal {
public:
    /// `file` empty: nothing is kept. Errors: usage, as the store's.
    static base::Result<Journal> open(const World& world, const std::string& file, const GatewaySettings& settings);
    Journal(Journal&&) noexcept;
    Journal& operator=(Journal&&) noexcept;
    ~Journal();

    /// Takes an answer down; empty when nothing is kept. A store that fails is said once, and the relay goes on.
    std::function<void(const answer::Record&)> keeper();
    void close();

private:
    struct State;
    explicit Journal(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace fullstop::cli
