// How much KV memory is promised and used, in blocks, exactly.
//
// Every sequence is promised a number of blocks before it starts, takes out of that promise as it
// grows, and may be promised more out of what is free. Sequences that begin with the same tokens
// may own their first blocks together: those are counted once, and are free when the last of them
// has left. The pool places nothing: libllama chooses cells itself, and since what is owned and
// promised never exceeds the pool, it always finds some.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/units.h"

namespace fullstop::engine {

/// Names one answer for engine and backend; chosen by the caller, never reused while alive.
using SequenceId = std::uint64_t;

class BlockPool {
public:
    /// A pool of `total` tokens, rounded down to whole blocks of `block`.
    BlockPool(base::Tokens total, base::Tokens block);

    bool can_reserve(base::Tokens tokens) const {
        return base::blocks_for(tokens, block_) <= free();
    }
    /// The first whole blocks of a sequence that has them.
    struct Beginning {
        SequenceId of = 0;
        base::Blocks blocks;
    };
    /// Asserts can_reserve() of what is not shared. With `shared` it owns that beginning at once.
    void reserve(SequenceId id, base::Tokens tokens, std::optional<Beginning> shared = {});
    /// What it owns, its promise and what is free hold `tokens`.
    bool can_extend(SequenceId id, base::Tokens tokens) const;
    /// Promises it more, until it may hold `tokens`. Asserts can_extend().
    void extend(SequenceId id, base::Tokens tokens);
    /// The sequence now holds `tokens` in KV. Asserts that this is within its promise; it never
    /// shrinks.
    void grow(SequenceId id, base::Tokens tokens);
    /// Frees everything the sequence owned or was promised.
    void release(SequenceId id);

    /// Owned by or promised to one sequence.
    base::Blocks held(SequenceId id) const;
    /// The first of its blocks, as far as others own them too.
    base::Blocks shared(SequenceId id) const;
    /// What releasing all of them would add to what is free.
    base::Blocks freed_by(std::span<const SequenceId> ids) const;
    /// By how much the blocks of these, each counted for itself, exceed what they own together.
    base::Blocks counted_twice(std::span<const SequenceId> ids) const;
    base::Blocks counted_twice() const { return twice_; }  ///< of all
    base::Blocks total() const { return total_; }
    base::Blocks free() const { return total_ - owned_ - promised_; }
    base::Blocks owned() const { return owned_; }
    base::Blocks promised() const { return promised_; }  ///< reserved and not yet owned
    base::Tokens block_size() const { return block_; }
    /// Counts everything again: free + promised + owned == total, each part >= 0 and equal to its
    /// running sum.
    void check() const;

private:
    using BlockId = std::uint64_t;
    struct Holding {
        std::vector<BlockId> owned;  ///< in the order of its tokens
        base::Blocks promised;
        base::Blocks count() const { return {static_cast<std::int64_t>(owned.size())}; }
    };
    std::unordered_map<BlockId, int> holders_among(std::span<const SequenceId> ids) const;

    base::Tokens block_;
    base::Blocks total_, owned_, promised_, twice_;
    std::map<SequenceId, Holding> holdings_;
    std::unordered_map<BlockId, int> shared_;  ///< holders, of blocks that have several
    BlockId next_ = 1;
};

}  // namespace fullstop::engine
