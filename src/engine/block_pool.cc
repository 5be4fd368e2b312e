// Two running sums and one map; check() is the independent count.
#include "engine/block_pool.h"

#include "base/assert.h"

namespace fullstop::engine {

using base::Blocks;
using base::Tokens;

BlockPool::BlockPool(Tokens total, Tokens block) : block_(block), total_{total.count / block.count} {
    FULLSTOP_ASSERT(total_.count > 0, "a pool holds at least one block");
}

void BlockPool::reserve(SequenceId id, Tokens tokens) {
    FULLSTOP_ASSERT(can_reserve(tokens), "a reservation fits the free blocks");
    const Blocks blocks = base::blocks_for(tokens, block_);
    const bool fresh = holdings_.emplace(id, Holding{.owned = {}, .promised = blocks}).second;
    FULLSTOP_ASSERT(fresh, "a sequence reserves once");
    promised_ += blocks;
}

bool BlockPool::can_extend(SequenceId id, Tokens tokens) const {
    const auto found = holdings_.find(id);
    FULLSTOP_ASSERT(found != holdings_.end(), "only a sequence with a reservation is extended");
    return base::blocks_for(tokens, block_) <= found->second.owned + found->second.promised + free();
}

void BlockPool::extend(SequenceId id, Tokens tokens) {
    FULLSTOP_ASSERT(can_extend(id, tokens), "an extension fits the free blocks");
    Holding& holding = holdings_.find(id)->second;
    const Blocks more = base::blocks_for(tokens, block_) - holding.owned - holding.promised;
    if (more.count <= 0) return;
    holding.promised += more;
    promised_ += more;
}

void BlockPool::grow(SequenceId id, Tokens tokens) {
    const auto found = holdings_.find(id);
    FULLSTOP_ASSERT(found != holdings_.end(), "only a sequence with a reservation grows");
    Holding& holding = found->second;
    const Blocks more = base::blocks_for(tokens, block_) - holding.owned;
    FULLSTOP_ASSERT(more.count >= 0 && more <= holding.promised, "a sequence grows within its promise");
    holding.owned += more;
    holding.promised -= more;
    owned_ += more;
    promised_ -= more;
}

Blocks BlockPool::held(SequenceId id) const {
    const auto found = holdings_.find(id);
    return found == holdings_.end() ? Blocks{} : found->second.owned + found->second.promised;
}

void BlockPool::release(SequenceId id) {
    const auto found = holdings_.find(id);
    FULLSTOP_ASSERT(found != holdings_.end(), "only a sequence with a reservation is released");
    owned_ -= found->second.owned;
    promised_ -= found->second.promised;
    holdings_.erase(found);
}

void BlockPool::check() const {
    Blocks owned, promised;
    for (const auto& [id, holding] : holdings_) {
        FULLSTOP_ASSERT(holding.owned.count >= 0 && holding.promised.count >= 0, "no sequence holds a negative number of blocks");
        owned += holding.owned;
        promised += holding.promised;
    }
    FULLSTOP_ASSERT(owned == owned_ && promised == promised_, "the running sums are those of the sequences");
    FULLSTOP_ASSERT(free().count >= 0 && free() + promised + owned == total_, "free + promised + owned blocks are all blocks");
}

}  // namespace fullstop::engine
