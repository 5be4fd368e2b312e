// Who waits and who is next. Three classes; first come, first served within a class and client, the
// client with the fewest tokens first within a class; whoever waits long moves up, and whoever is
// overdue is served strictly by age, so that nobody starves. What has room is the caller's
// question: this only orders.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/policy.h"
#include "serving/token_counters.h"

namespace fullstop::gateway {

struct Ticket {
    std::uint64_t id = 0;
    Priority priority = Priority::kNormal;
    std::string client;
    base::Instant arrived;
    std::int64_t tokens = 0;  ///< estimate of prompt and answer
    std::size_t bytes = 0;    ///< of its body, in memory
};

class Queue {
public:
    explicit Queue(QueueLimits limits) : limits_(limits) {}
    void set_limits(const QueueLimits& limits) { limits_ = limits; }

    /// Whether one more may wait; the reason when not.
    std::optional<std::string> full(const Ticket& ticket) const;
    /// In order of arrival, also of one that comes back.
    void push(Ticket ticket);
    bool remove(std::uint64_t id);

    /// Offers the tickets in their order. What is taken leaves the queue; what has no room stays
    /// where it is, and the next is offered; when nothing has room for anybody it ends.
    enum class Reply { kTaken, kNoRoom, kNobody };
    void offer(base::Instant now, const serving::TokenCounters& used,
               const std::function<Reply(const Ticket&, bool overdue)>& place);

    /// The earliest moment at which a waiting ticket becomes overdue.
    std::optional<base::Instant> next_overdue(base::Instant now) const;

    std::size_t size() const { return tickets_.size(); }
    std::size_t size(Priority priority) const;
    std::int64_t tokens() const { return tokens_; }
    /// Requests that would be served before a new one of this class.
    std::size_t ahead_of(Priority priority) const;
    bool contains(std::uint64_t id) const;

private:
    /// 0: overdue; then the classes. A class is gained with each period of waiting.
    int rank(const Ticket& ticket, base::Instant now) const;
    std::vector<std::list<Ticket>::iterator> ordered(base::Instant now,
                                                     const serving::TokenCounters& used);

    QueueLimits limits_;
    std::list<Ticket> tickets_;  ///< by arrival
    std::int64_t tokens_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace fullstop::gateway
