// Timers of all parts behind one timer of the loop. Parts move a silence timer with every event
// they receive, so moving one later is a store into a map: the old place in the heap is looked at
// when its time comes, and passed on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "base/time.h"

namespace fullstop::adapters::asio {

class TimerTable {
public:
    using Key = std::uint64_t;

    /// Setting again moves. True when the earliest moment of the table may have become earlier.
    bool set(Key key, base::Instant at) {
        Entry& entry = entries_[key];
        entry.at = at;
        if (entry.queued && *entry.queued <= at) return false;
        entry.queued = at;
        heap_.push({at, key});
        if (heap_.size() > kStalePlaces + 2 * entries_.size()) rebuild();
        return heap_.top().key == key;
    }
    void cancel(Key key) {
        entries_.erase(key);
        forget_places();
    }

    /// When to look again; may be earlier than any timer is due.
    std::optional<base::Instant> next() const {
        if (heap_.empty()) return std::nullopt;
        return heap_.top().at;
    }

    std::size_t size() const { return entries_.size(); }
    std::size_t places() const { return heap_.size(); }  ///< of living and stale timers

    /// Takes one timer that is due at `now` out of the table.
    std::optional<Key> take_due(base::Instant now) {
        while (!heap_.empty() && heap_.top().at <= now) {
            const Place place = heap_.top();
            heap_.pop();
            const auto found = entries_.find(place.key);
            if (found == entries_.end() || found->second.queued != place.at)
                continue;  // cancelled, or moved to an earlier place
            if (found->second.at == place.at) {
                entries_.erase(found);
                forget_places();
                return place.key;
            }
            // Moved later: back into the heap even when it is due as well, so that late timers
            // still fire in order.
            found->second.queued = found->second.at;
            heap_.push({found->second.at, place.key});
        }
        return std::nullopt;
    }

private:
    /// Places of cancelled timers are dropped in bulk once they outnumber the living ones by this
    /// much.
    static constexpr std::size_t kStalePlaces = 1024;

    struct Entry {
        base::Instant at;
        std::optional<base::Instant> queued;  ///< the place in the heap that counts
    };
    struct Place {
        base::Instant at;
        Key key;
        bool operator>(const Place& other) const { return at > other.at; }
    };
    using Heap = std::priority_queue<Place, std::vector<Place>, std::greater<>>;

    /// Without a timer no place counts. (One that stayed would be due for ever: who waits for
    /// next() would spin.)
    void forget_places() {
        if (entries_.empty()) heap_ = Heap();
    }

    void rebuild() {
        std::vector<Place> places;
        for (auto& [key, entry] : entries_) {
            entry.queued = entry.at;
            places.push_back({entry.at, key});
        }
        heap_ = Heap(std::greater<>(), std::move(places));
    }

    std::unordered_map<Key, Entry> entries_;
    Heap heap_;
};

}  // namespace fullstop::adapters::asio
