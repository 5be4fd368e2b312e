// Shared budgets in a Redis or Valkey: a part that keeps one connection, on which questions follow
// each other without waiting, and answers every question within the timeout, with or without the
// store.
//
// What was asked stays known until its settlement is confirmed: a lost connection loses nothing,
// because the script takes the same question twice for one. Reservations are renewed while they
// last; those of a dead gateway run out by themselves.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/redis/resp.h"
#include "adapters/redis/script_call.h"
#include "gateway/budget/shared_budget.h"
#include "net/event.h"

namespace fullstop::adapters::redis {

class BudgetStore final : public net::Part {
public:
    /// `instance`: no other gateway has the same; lower-case hex.
    BudgetStore(gateway::SharedStore where, std::string instance)
        : where_(std::move(where)), instance_(std::move(instance)) {}

    void start(base::Instant now, net::Actions& out) override;
    void on(const net::Event& event, net::Actions& out) override;
    /// After retire(), when the store has heard of every end or cannot be reached.
    bool done() const override { return retired_ && open_.empty(); }

    void ask(base::Instant now, const gateway::StoreAsk& ask, net::Actions& out);
    bool knows(std::uint64_t id) const { return open_.contains(id); }
    /// It is no longer in the configuration: nothing more is asked, what runs is settled.
    void retire(base::Instant now, net::Actions& out);

    std::vector<gateway::StoreAnswer> take_answers() { return std::exchange(answers_, {}); }
    gateway::StoreState state() const {
        return {.up = up_, .trouble = words_, .kept = settling_, .dropped = dropped_};
    }
    /// Nothing is on the way to a store that could still hear it.
    bool idle() const { return !up_ || (flights_.empty() && to_settle_.empty()); }

private:
    struct Open {
        gateway::StoreReserve ask;
        base::Instant asked;
        bool waiting = true;    ///< for an answer
        bool told = false;      ///< the store may have heard of it
        bool held = false;      ///< the store has said that it knows it
        bool settling = false;  ///< ended; `used` counts
        bool again = false;     ///< the store may have heard of the end already
        std::int64_t used = 0;
        int errors = 0;
    };
    struct Flight {
        enum class Step { kAuth, kSelect, kLoad, kCall } step = Step::kCall;
        Operation operation = Operation::kReserve;
        std::uint64_t id = 0;
    };
    struct Due {
        base::Instant at;
        std::uint64_t id;
    };

    void reserve(base::Instant now, const gateway::StoreReserve& ask, net::Actions& out);
    void settle(base::Instant now, const gateway::StoreSettle& ask, net::Actions& out);
    void answer(base::Instant now, Open& open, gateway::StoreAnswer answer);
    void lose_waiting(base::Instant now);
    void forget(std::uint64_t id, bool dropped);

    void connect(base::Instant now, net::Actions& out);
    void greet(base::Instant now, net::Actions& out);
    void came_up(base::Instant now, net::Actions& out);
    void send(base::Instant now, const Flight& flight, std::string bytes, net::Actions& out);
    void call(base::Instant now, Operation operation, std::uint64_t id, bool whole_script,
              net::Actions& out);
    void send_waiting(base::Instant now, net::Actions& out);

    void received(base::Instant now, std::string_view bytes, net::Actions& out);
    void replied(base::Instant now, const Flight& flight, const Reply& reply, net::Actions& out);
    void greeted(base::Instant now, const Flight& flight, const Reply& reply, net::Actions& out);
    void called(base::Instant now, const Flight& flight, const Verdict& verdict);
    void call_failed(base::Instant now, const Flight& flight, const Reply& reply,
                     net::Actions& out);
    /// Closes what is open of it.
    void give_up(base::Instant now, std::string words, bool good, net::Actions& out);
    void lost(base::Instant now, std::string words, bool good, net::Actions& out);
    void retry_later(base::Instant now, net::Actions& out);

    void on_time(base::Instant now, net::Actions& out);
    void arm(net::Actions& out);

    gateway::SharedStore where_;
    std::string instance_, sha_;
    net::ConnectionId connection_ = 0, last_connection_ = 0;
    bool up_ = false,
         trying_ = false;  ///< trying_: for the first time, or again at once: questions wait
    bool retired_ = false;
    std::string words_ = "not connected yet";
    base::Instant since_{}, progress_{};
    int failures_ = 0;
    std::optional<base::Instant> retry_at_, armed_;

    ReplyReader reader_;
    std::deque<Flight> flights_;
    std::map<std::uint64_t, Open> open_;
    std::deque<Due> deadlines_, renewals_;  ///< in order of time
    std::deque<std::uint64_t> to_settle_;   ///< not sent on this connection
    std::size_t settling_ = 0;
    std::int64_t dropped_ = 0;
    std::vector<gateway::StoreAnswer> answers_;
};

}  // namespace fullstop::adapters::redis
