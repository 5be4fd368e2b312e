// Who lets go: first those that are idle, the largest first and several at once, because finding
// them means looking at all; then the largest of those that move, which may be the one that asks.
#include "net/memory_budget.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace fullstop::net {
namespace {

/// Dropped in one go; each costs a few system calls.
constexpr std::size_t kDroppedAtOnce = 64;

}  // namespace

// Hold
// -------------------------------------------------------------------------------------------------

MemoryBudget::Hold::Hold(MemoryBudget& budget, std::function<void()> drop)
    : budget_(&budget),
      id_(++budget.last_id_),
      entry_(&budget.entries_.emplace(id_, Entry{.drop = std::move(drop)}).first->second) {}

MemoryBudget::Hold& MemoryBudget::Hold::operator=(Hold&& other) noexcept {
    if (this == &other) return *this;
    reset();
    budget_ = std::exchange(other.budget_, nullptr);
    id_ = other.id_;
    entry_ = std::exchange(other.entry_, nullptr);
    return *this;
}

void MemoryBudget::Hold::reset() {
    if (entry_ == nullptr) return;
    release();
    budget_->entries_.erase(id_);
    entry_ = nullptr;
}

bool MemoryBudget::Hold::resize(std::size_t bytes, base::Instant now) {
    if (entry_ == nullptr) return true;
    const std::size_t before = entry_->bytes;
    const auto count = [this](std::size_t held) {
        budget_->held_ += held - entry_->bytes;
        if (!entry_->drop) budget_->lasting_ += held - entry_->bytes;
        entry_->bytes = held;
    };
    if (before == 0) entry_->moved_at = now;
    count(bytes);
    if (bytes <= before || budget_->held_ <= budget_->bound(bytes)) return true;
    MemoryBudget* budget = budget_;
    if (budget->make_room(id_, now)) return true;
    ++budget->refused_;
    count(before);
    return false;
}

void MemoryBudget::Hold::moved(std::size_t bytes, base::Instant now) {
    if (entry_ == nullptr || entry_->bytes == 0 || (entry_->moved_bytes += bytes) < kMovedBytes)
        return;
    entry_->moved_bytes = 0;
    entry_->moved_at = now;
}

// Room
// -------------------------------------------------------------------------------------------------

/// For one that holds already what it asks for.
bool MemoryBudget::make_room(std::uint64_t for_whom, base::Instant now) {
    const std::size_t enough = bound(entries_.at(for_whom).bytes);
    if (std::exchange(dropping_, true))
        return held_ <= enough;  // whoever is dropped may make others ask
    drop_idle(for_whom, enough - limit_ / 8, now);
    while (held_ > enough && drop_largest(for_whom, now)) continue;
    dropping_ = false;
    return held_ <= enough;
}

void MemoryBudget::drop_idle(std::uint64_t but, std::size_t down_to, base::Instant now) {
    std::vector<std::pair<std::size_t, std::uint64_t>> idle;
    for (const auto& [id, entry] : entries_)
        if (entry.drop && entry.bytes > 0 && id != but && now - entry.moved_at >= kIdleHold)
            idle.emplace_back(entry.bytes, id);
    const std::size_t count = std::min(idle.size(), kDroppedAtOnce);
    std::ranges::partial_sort(idle, idle.begin() + static_cast<std::ptrdiff_t>(count),
                              std::greater());
    for (std::size_t i = 0; i < count && held_ > down_to; ++i) drop(idle[i].second);
}

/// False when that is who asks, or nobody: who asks is refused. So is who asks for much and is idle
/// itself.
bool MemoryBudget::drop_largest(std::uint64_t for_whom, base::Instant now) {
    const Entry& asking = entries_.at(for_whom);
    const bool asks_little = asking.bytes <= kSmallHoldBytes;
    if (!asks_little && asking.drop && now - asking.moved_at >= kIdleHold) return false;
    std::uint64_t largest = 0;
    std::size_t bytes = asks_little ? 0 : asking.bytes;
    for (const auto& [id, entry] : entries_)
        if (entry.drop && id != for_whom && entry.bytes > bytes) largest = id, bytes = entry.bytes;
    if (largest == 0) return false;
    drop(largest);
    return true;
}

void MemoryBudget::drop(std::uint64_t id) {
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.bytes == 0) return;
    ++dropped_;
    const auto let_go = found->second.drop;  // a copy: it may end its own entry
    let_go();
    const auto still = entries_.find(id);
    FULLSTOP_ASSERT(still == entries_.end() || still->second.bytes == 0,
                    "who is dropped lets go of everything");
}

}  // namespace fullstop::net
