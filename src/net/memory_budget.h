// How much may be held for others at once? One budget of bytes for the whole process: requests that
// are not whole, bodies under way, answers in reading, backlogs of slow readers. When it is used
// up, who holds much and does not move is dropped first, never who needs little. On one thread;
// callers count what they hold, the budget says who has to let go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "base/time.h"
#include "net/limits.h"

namespace fullstop::net {

class MemoryBudget {
    struct Entry {
        std::size_t bytes = 0, moved_bytes = 0;
        base::Instant moved_at{};
        std::function<void()> drop;
    };

public:
    explicit MemoryBudget(std::size_t limit = kMaxHeldBytes) : limit_(limit) {}
    MemoryBudget(const MemoryBudget&) = delete;
    MemoryBudget& operator=(const MemoryBudget&) = delete;

    /// What one holder has, as it says itself.
    class Hold {
    public:
        Hold() = default;  ///< of no budget: everything fits
        /// `drop`, when there is one, lets go of everything at once: it ends with this hold empty
        /// or gone, and has touched no hold that is just being resized. Without it nobody is
        /// dropped for others (a body under way), but may be refused.
        explicit Hold(MemoryBudget& budget, std::function<void()> drop = {});
        ~Hold() { reset(); }
        Hold(Hold&& other) noexcept { *this = std::move(other); }
        Hold& operator=(Hold&& other) noexcept;

        /// Holds `bytes` from now on; others may be dropped for it. False: there is no room, and it
        /// holds what it held before.
        bool resize(std::size_t bytes, base::Instant now);
        void release() { resize(0, {}); }
        /// Bytes came, or went to whom they are held for: it is not idle.
        void moved(std::size_t bytes, base::Instant now);
        std::size_t bytes() const { return entry_ == nullptr ? 0 : entry_->bytes; }

    private:
        void reset();
        MemoryBudget* budget_ = nullptr;
        std::uint64_t id_ = 0;
        Entry* entry_ = nullptr;
    };

    std::size_t limit() const { return limit_; }
    std::size_t held() const { return held_; }
    std::uint64_t dropped() const { return dropped_; }  ///< holders that had to let go
    std::uint64_t refused() const { return refused_; }  ///< for whom no room was made
    /// Whether `bytes` more could be held once everybody who can be dropped was.
    bool could_hold(std::size_t bytes) const { return lasting_ + bytes <= bound(bytes); }

private:
    /// The last part of the budget is for those who need little.
    std::size_t bound(std::size_t bytes) const {
        return bytes <= kSmallHoldBytes ? limit_ : limit_ - limit_ / 4;
    }
    bool make_room(std::uint64_t for_whom, base::Instant now);
    void drop_idle(std::uint64_t but, std::size_t down_to, base::Instant now);
    bool drop_largest(std::uint64_t for_whom, base::Instant now);
    void drop(std::uint64_t id);

    std::size_t limit_, held_ = 0;
    std::size_t lasting_ = 0;  ///< of those that are not dropped
    std::uint64_t last_id_ = 0, dropped_ = 0, refused_ = 0;
    bool dropping_ = false;
    std::unordered_map<std::uint64_t, Entry> entries_;
};

}  // namespace fullstop::net
