// Running sums beside the blocks of each sequence; check() is the independent count.
#include "engine/scheduling/block_pool.h"

#include <algorithm>

#include "base/assert.h"

namespace fullstop::engine {

using base::Blocks;
using base::Tokens;

BlockPool::BlockPool(Tokens total, Tokens block)
    : block_(block), total_{total.count / block.count} {
    FULLSTOP_ASSERT(total_.count > 0, "a pool holds at least one block");
}

void BlockPool::reserve(SequenceId id, Tokens tokens, std::optional<Beginning> shared) {
    Holding holding{.owned = {}, .promised = base::blocks_for(tokens, block_)};
    if (shared) {
        const auto with = holdings_.find(shared->of);
        FULLSTOP_ASSERT(with != holdings_.end() && shared->blocks <= with->second.count() &&
                            shared->blocks <= holding.promised,
                        "a beginning is shared with one that has it");
        holding.owned.assign(with->second.owned.begin(),
                             with->second.owned.begin() + shared->blocks.count);
        for (const BlockId block : holding.owned) ++shared_.try_emplace(block, 1).first->second;
        twice_ += shared->blocks;
        holding.promised -= shared->blocks;
    }
    FULLSTOP_ASSERT(holding.promised <= free(), "a reservation fits the free blocks");
    promised_ += holding.promised;
    const bool fresh = holdings_.emplace(id, std::move(holding)).second;
    FULLSTOP_ASSERT(fresh, "a sequence reserves once");
}

bool BlockPool::can_extend(SequenceId id, Tokens tokens) const {
    const auto found = holdings_.find(id);
    FULLSTOP_ASSERT(found != holdings_.end(), "only a sequence with a reservation is extended");
    return base::blocks_for(tokens, block_) <=
           found->second.count() + found->second.promised + free();
}

void BlockPool::extend(SequenceId id, Tokens tokens) {
    FULLSTOP_ASSERT(can_extend(id, tokens), "an extension fits the free blocks");
    Holding& holding = holdings_.find(id)->second;
    const Blocks more = base::blocks_for(tokens, block_) - holding.count() - holding.promised;
    if (more.count <= 0) return;
    holding.promised += more;
    promised_ += more;
}

void BlockPool::grow(SequenceId id, Tokens tokens) {
    const auto found = holdings_.find(id);
    FULLSTOP_ASSERT(found != holdings_.end(), "only a sequence with a reservation grows");
    Holding& holding = found->second;
    const Blocks more = base::blocks_for(tokens, block_) - holding.count();
    FULLSTOP_ASSERT(more.count >= 0 && more <= holding.promised,
                    "a sequence grows within its promise");
    for (std::int64_t i = 0; i < more.count; ++i) holding.owned.push_back(next_++);
    holding.promised -= more;
    owned_ += more;
    promised_ -= more;
}

Blocks BlockPool::held(SequenceId id) const {
    const auto found = holdings_.find(id);
    return found == holdings_.end() ? Blocks{} : found->second.count() + found->second.promised;
}

Blocks BlockPool::shared(SequenceId id) const {
    const auto found = holdings_.find(id);
    if (found == holdings_.end()) return {};
    const auto& owned = found->second.owned;
    return {
        std::ranges::find_if(owned, [this](BlockId block) { return !shared_.contains(block); }) -
        owned.begin()};
}

std::unordered_map<BlockPool::BlockId, int> BlockPool::holders_among(
    std::span<const SequenceId> ids) const {
    std::unordered_map<BlockId, int> among;
    if (shared_.empty()) return among;
    for (const SequenceId id : ids)
        if (const auto found = holdings_.find(id); found != holdings_.end())
            for (const BlockId block : found->second.owned)
                if (shared_.contains(block)) ++among[block];
    return among;
}

Blocks BlockPool::freed_by(std::span<const SequenceId> ids) const {
    Blocks all;
    for (const SequenceId id : ids) all += held(id);
    for (const auto& [block, holders] : holders_among(ids))
        all -= Blocks{holders == shared_.at(block) ? holders - 1 : holders};
    return all;
}

Blocks BlockPool::counted_twice(std::span<const SequenceId> ids) const {
    Blocks twice;
    for (const auto& [block, holders] : holders_among(ids)) twice += Blocks{holders - 1};
    return twice;
}

void BlockPool::release(SequenceId id) {
    const auto found = holdings_.find(id);
    FULLSTOP_ASSERT(found != holdings_.end(), "only a sequence with a reservation is released");
    for (const BlockId block : found->second.owned) {
        const auto shared = shared_.find(block);
        if (shared == shared_.end()) {
            owned_ -= Blocks{1};
            continue;
        }
        twice_ -= Blocks{1};
        if (--shared->second == 1) shared_.erase(shared);
    }
    promised_ -= found->second.promised;
    holdings_.erase(found);
}

void BlockPool::check() const {
    Blocks promised, twice;
    std::unordered_map<BlockId, int> holders;
    for (const auto& [id, holding] : holdings_) {
        FULLSTOP_ASSERT(holding.promised.count >= 0,
                        "no sequence is promised a negative number of blocks");
        for (const BlockId block : holding.owned) ++holders[block];
        promised += holding.promised;
    }
    std::size_t several = 0;
    for (const auto& [block, count] : holders) {
        if (count == 1) continue;
        ++several;
        twice += Blocks{count - 1};
        const auto shared = shared_.find(block);
        FULLSTOP_ASSERT(shared != shared_.end() && shared->second == count,
                        "a shared block knows how many hold it");
    }
    const Blocks owned{static_cast<std::int64_t>(holders.size())};
    FULLSTOP_ASSERT(
        owned == owned_ && promised == promised_ && twice == twice_ && several == shared_.size(),
        "the running sums are those of the sequences");
    FULLSTOP_ASSERT(free().count >= 0 && free() + promised + owned == total_,
                    "free + promised + owned blocks are all blocks");
}

}  // namespace fullstop::engine
