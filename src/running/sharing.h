// The gateway's store of shared budgets on a real host: the one of the configuration, and those
// that were it before, until what was asked of them is settled. It collects answers; whoever relays
// fetches them between two calls of the gateway.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "adapters/asio/client/host.h"
#include "gateway/budget/shared_budget.h"

namespace fullstop::running {

class Sharing {
public:
    /// `told`: answers or another state are there to be fetched; called from the stores' own events
    /// only.
    Sharing(adapters::asio::Host& host, std::function<void()> told);
    ~Sharing();
    Sharing(const Sharing&) = delete;
    Sharing& operator=(const Sharing&) = delete;

    /// On the loop's thread, and not from inside an event of a store. Absent: nothing is shared any
    /// more.
    void configure(const std::optional<gateway::SharedStore>& store);
    void ask(base::Instant now, const gateway::StoreAsk& ask);
    std::vector<gateway::StoreAnswer> take_answers();
    gateway::StoreState state() const;
    /// No store that answers has yet to hear of something.
    bool idle() const;

private:
    class Link;
    adapters::asio::Host& host_;
    std::function<void()> told_;
    std::optional<gateway::SharedStore> where_;
    std::vector<std::unique_ptr<Link>> links_;  ///< a part outlives its host
    Link* current_ = nullptr;
};

}  // namespace fullstop::running
