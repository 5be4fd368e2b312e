// A list by arrival, sorted anew for each offer: at most a few hundred wait, and offers come once
// for each answer that ends.
#include "gateway/placement/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace fullstop::gateway {

std::optional<std::string> Queue::full(const Ticket& ticket) const {
    if (tickets_.size() >= limits_.requests)
        return fmt::format("{} requests wait already (limit {})", tickets_.size(),
                           limits_.requests);
    // One request alone may be larger than the limit: it could never come in otherwise.
    if (!tickets_.empty() && tokens_ + ticket.tokens > limits_.tokens)
        return fmt::format(
            "{} requests with about {} tokens wait already, and this one is {} (limit {})",
            tickets_.size(), tokens_, ticket.tokens, limits_.tokens);
    if (bytes_ + ticket.bytes > kMaxQueuedBytes)
        return fmt::format("the bodies of waiting requests fill {} MiB already", bytes_ >> 20);
    return std::nullopt;
}

void Queue::push(Ticket ticket) {
    tokens_ += ticket.tokens;
    bytes_ += ticket.bytes;
    const auto later = std::find_if(tickets_.rbegin(), tickets_.rend(), [&](const Ticket& each) {
                           return each.arrived <= ticket.arrived;
                       }).base();
    tickets_.insert(later, std::move(ticket));
}

bool Queue::remove(std::uint64_t id) {
    const auto found = std::ranges::find(tickets_, id, &Ticket::id);
    if (found == tickets_.end()) return false;
    tokens_ -= found->tokens;
    bytes_ -= found->bytes;
    tickets_.erase(found);
    return true;
}

bool Queue::contains(std::uint64_t id) const {
    return std::ranges::find(tickets_, id, &Ticket::id) != tickets_.end();
}

int Queue::rank(const Ticket& ticket, base::Instant now) const {
    const auto periods = limits_.ageing.count() > 0 ? (now - ticket.arrived) / limits_.ageing : 0;
    return static_cast<int>(
        std::max<std::int64_t>(0, static_cast<std::int64_t>(ticket.priority) + 1 - periods));
}

std::vector<std::list<Ticket>::iterator> Queue::ordered(base::Instant now,
                                                        const serving::TokenCounters& used) {
    struct Key {
        int rank;
        std::int64_t used;
        std::size_t position;
        std::list<Ticket>::iterator ticket;
    };
    std::vector<Key> keys;
    keys.reserve(tickets_.size());
    for (auto at = tickets_.begin(); at != tickets_.end(); ++at) {
        const int place = rank(*at, now);
        keys.push_back({place, place == 0 ? 0 : used.used(at->client), keys.size(), at});
    }
    std::ranges::sort(keys, {},
                      [](const Key& key) { return std::tuple(key.rank, key.used, key.position); });
    std::vector<std::list<Ticket>::iterator> out;
    out.reserve(keys.size());
    for (const Key& key : keys) out.push_back(key.ticket);
    return out;
}

void Queue::offer(base::Instant now, const serving::TokenCounters& used,
                  const std::function<Reply(const Ticket&, bool)>& place) {
    // Each one that was taken changes its client's count, so that the order is made anew; what was
    // refused stays refused.
    std::unordered_set<std::uint64_t> refused;
    for (bool taken = true; taken;) {
        taken = false;
        for (const auto at : ordered(now, used)) {
            if (refused.contains(at->id)) continue;
            const std::uint64_t id = at->id;
            const Reply reply = place(*at, rank(*at, now) == 0);
            if (reply == Reply::kNobody) return;
            if (reply == Reply::kTaken) {
                remove(id);
                taken = true;
                break;
            }
            refused.insert(id);
        }
    }
}

std::optional<base::Instant> Queue::next_overdue(base::Instant now) const {
    std::optional<base::Instant> first;
    for (const Ticket& ticket : tickets_) {
        const base::Instant at =
            ticket.arrived + limits_.ageing * (static_cast<int>(ticket.priority) + 1);
        if (at > now && (!first || at < *first)) first = at;
    }
    return first;
}

std::size_t Queue::size(Priority priority) const {
    return static_cast<std::size_t>(std::ranges::count(tickets_, priority, &Ticket::priority));
}

std::size_t Queue::ahead_of(Priority priority) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        tickets_, [&](const Ticket& each) { return each.priority <= priority; }));
}

}  // namespace fullstop::gateway
