// The gateway between clients and its upstreams: requests and upstream events in, actions for both
// sides out. Sans-IO: no socket, clock or thread; a rim wires it to a server for the clients and to
// a client host for the upstreams.
//
// An answer waits in the queue until an upstream has room, in answers and in tokens; everything
// else (models, health) is passed on at once. Each attempt has a connection for itself; one that
// carried a whole answer is kept for a next request. Nothing that an upstream may have read is ever
// sent twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "gateway/budget/budget.h"
#include "gateway/budget/shared_budget.h"
#include "gateway/exchange/exchange.h"
#include "gateway/fault.h"
#include "gateway/limits.h"
#include "gateway/metrics/metrics.h"
#include "gateway/placement/placement.h"
#include "gateway/placement/queue.h"
#include "gateway/policy.h"
#include "net/event.h"
#include "net/service.h"

namespace fullstop::gateway {

/// What is to be done on either side, in order.
struct Actions {
    net::ServiceActions client;
    net::Actions upstream;
    std::vector<StoreAsk> store;  ///< of shared budgets
};

struct GatewayOptions {
    Policy policy;
    std::string version;
    std::uint64_t entropy = 0;  ///< for request ids
    base::Instant started{};    ///< origin of the times in records
    /// Told of every answer once it has ended, if anybody wants to know.
    std::function<void(const answer::Record&)> ended = {};
    /// What became of those records, for /metrics, if anybody keeps them.
    std::function<RecordCounts()> records = {};
    /// Told of every exchange that a fault of this gateway ended.
    std::function<void(const Fault&)> fault = {};
    /// For tests: called within each step of an exchange; what it throws is a fault.
    std::function<void()> plant = {};
    net::MemoryBudget* memory = nullptr;  ///< of the process; absent: bodies are not counted
};

class Gateway {
public:
    explicit Gateway(GatewayOptions options);

    // From the clients' side (net::Service)
    /// False: it may not ask and has its answer; its body is not wanted.
    bool head(base::Instant now, const net::ServiceRequest& request, Actions& out);
    void request(base::Instant now, net::ServiceRequest request, Actions& out);
    /// It leaves the queue, or its upstream's connection is closed at once, whatever that was
    /// doing.
    void client_left(base::Instant now, net::ConnectionId id, Actions& out);
    /// Back-pressure: the upstream is not read while its client lags.
    void client_lags(base::Instant now, net::ConnectionId id, bool lags, Actions& out);

    // From the upstreams' side (net::Part)
    void upstream(const net::Event& event, Actions& out) {
        pass_on(event, out);
        read_on(event, out);
    }
    /// The two halves of it, for a rim that sends what the first one says before it calls the
    /// second: reading the copy for its facts then delays no event. Both within the life of the
    /// event's bytes.
    void pass_on(const net::Event& event, Actions& out);
    void read_on(const net::Event& event, Actions& out);

    // From whoever asks the upstreams about themselves
    void learned(UpstreamId id, Capacity capacity, base::Instant now, Actions& out);
    void loaded(UpstreamId id, const Load& load, base::Instant now, Actions& out);

    // From the store of shared budgets
    void answered(const StoreAnswer& answer, base::Instant now, Actions& out);
    void store_is(StoreState state) { store_ = std::move(state); }

    /// Another configuration from now on. What is under way ends under the terms it began with.
    void configure(Policy policy, base::Instant now, Actions& out);
    const Policy& policy() const { return options_.policy; }
    const Upstreams& upstreams() const { return upstreams_; }

    /// For a rim that caught what belongs to no exchange.
    void stray_fault(std::string_view what) { note_fault(nullptr, what, ""); }

    /// No new requests (503); running and waiting answers go on until the drain limit, then they
    /// end with a reason.
    void drain(base::Instant now, Actions& out);
    bool drained() const { return draining_ && live_.empty(); }
    std::size_t running() const { return live_.size(); }
    std::size_t waiting() const { return queue_.size(); }
    /// The request that a connection to an upstream was opened for; 0 when it is over.
    net::ConnectionId request_of(net::ConnectionId connection) const {
        const auto found = attempts_.find(connection);
        return found == attempts_.end() ? 0 : found->second;
    }

private:
    /// Requests are numbered from 1 by the host, so the last number is free.
    /// The connection to an upstream, behind what has just come of it.
    enum class Link { kOpen, kClosed };
    static constexpr net::TimerId kQueueTimer = std::numeric_limits<net::TimerId>::max();
    struct Entry {
        std::unique_ptr<Exchange> exchange;
        net::ConnectionId connection = 0;  ///< of the attempt under way; 0: none
        std::int64_t reserved = 0;         ///< in the budgets
        bool shared = false;               ///< the store was asked too, and has to hear of the end
        std::vector<SharedWindow> asking = {};  ///< what it was asked for and has not answered yet
        bool counted = false;                   ///< holds a place at its upstream
    };
    using Live = std::unordered_map<net::ConnectionId, Entry>;

    bool own_page(base::Instant now, const net::ServiceRequest& request,
                  const std::string& request_id, Actions& out);
    std::string status_body(base::Instant now) const;

    void begin(base::Instant now, net::ServiceRequest request, std::string request_id, Work work,
               Actions& out);
    bool set_aside(Live::iterator at, base::Instant now, Actions& out);
    bool ask_store(Live::iterator at, base::Instant now, Actions& out);
    void over_budget(Live::iterator at, const std::string& message,
                     std::optional<base::Duration> retry_after, base::Instant now, Actions& out);
    void without_store(Live::iterator at, base::Duration took, base::Instant now, Actions& out);
    Ticket ticket_of(const Live::value_type& live) const;
    void wait_or_refuse(Live::iterator at, base::Instant now, Actions& out);
    void pump(base::Instant now, Actions& out);
    Queue::Reply place(const Ticket& ticket, bool overdue, std::set<UpstreamId>& claimed,
                       base::Instant now, Actions& out);
    std::vector<UpstreamId> takers(const Exchange& exchange) const;
    bool floors_allow(Priority priority) const;
    void dispatch(Live::iterator at, const Upstreams::Choice& choice, bool others,
                  base::Instant now, Actions& out);
    /// What an attempt says about its upstream.
    enum class Showed { kNothing, kFailure, kHealth };
    void release(Entry& entry, Showed showed, base::Instant now);
    void try_elsewhere(Live::iterator at, Link link, base::Instant now, Actions& out);
    void refuse(Live::iterator at, int status, std::string message,
                std::optional<base::Duration> retry_after, base::Instant now, Actions& out);
    base::Duration estimated_wait(Priority priority) const;

    void end_stranded(base::Instant now, Actions& out);
    void on_timer(base::Instant now, net::TimerId id, Actions& out);
    void watch(const Live::value_type& live, base::Instant now, Actions& out) const;
    void take(base::Instant now, net::ServiceRequest request, std::string request_id, Actions& out);
    /// What it was that a step was about, should it fail.
    struct Came {
        std::string_view bytes;
        Link link = Link::kOpen;
    };
    /// One step of one exchange, with the bytes for its client. What it throws ends that exchange
    /// and nothing else.
    template <class Step>
    void guarded(net::ConnectionId id, Came came, base::Instant now, Actions& out,
                 const Step& step) {
        std::string bytes;
        try {
            step(bytes);
        } catch (const std::exception& thrown) {
            end_by_fault(id, thrown.what(), came, std::move(bytes), now, out);
        }
    }
    void end_by_fault(net::ConnectionId id, std::string_view what, Came came, std::string bytes,
                      base::Instant now, Actions& out);
    void note_fault(const Exchange* exchange, std::string_view what, std::string_view bytes);
    void keep_record(const Exchange& exchange, const std::optional<End>& end, base::Instant now);
    void settle(Live::iterator at, std::string bytes, Link link, base::Instant now, Actions& out);
    void note_pace(base::Instant now);
    void count(const Exchange& exchange, base::Instant now);
    void forget(Live::iterator at, base::Instant now, Actions& out);

    GatewayOptions options_;
    base::Random random_;
    Upstreams upstreams_;
    Queue queue_;
    serving::TokenCounters counters_;
    Budget budget_;
    Metrics metrics_;
    StoreState store_;
    StoreMetrics store_metrics_;
    Live live_;
    std::unordered_map<net::ConnectionId, net::ConnectionId>
        attempts_;  ///< connection to an upstream -> request
    net::ConnectionId next_connection_ = 1;
    std::array<int, kPriorities> running_by_class_{};
    std::optional<base::Instant> last_end_;
    base::Duration between_ends_{};  ///< of answers, smoothed; 0: not known
    bool draining_ = false, pumping_ = false;
};

}  // namespace fullstop::gateway
