// The gateway's store of shared budgets on a real host: the one of the configuration, and those
// that were it before, until what was asked of them is settled.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "adapters/asio/client/host.h"
#include "gateway/budget/shared_budget.h"

namespace fullstop::running {

class Sharing final : adapters::asio::TurnQueue::Member {
public:
    /// How the store is now, and what it answered since.
    using Says =
        std::function<void(const gateway::StoreState&, const std::vector<gateway::StoreAnswer>&)>;
    /// `says` is called in a turn of its own, whenever something came of the stores.
    Sharing(adapters::asio::Loop& loop, adapters::asio::Host& host, Says says);
    ~Sharing() override;

    /// On the loop's thread. Absent: nothing is shared any more.
    void configure(const std::optional<gateway::SharedStore>& store);
    void ask(base::Instant now, const gateway::StoreAsk& ask);
    /// No store that answers has yet to hear of something.
    bool idle() const;

private:
    class Link;
    void take_turn() override;

    const base::Clock& clock_;
    adapters::asio::Host& host_;
    Says says_;
    std::optional<gateway::SharedStore> where_;
    std::vector<std::unique_ptr<Link>> links_;  ///< a part outlives its host
    Link* current_ = nullptr;
};

}  // namespace fullstop::running
