// How much KV memory is promised and used, in blocks, exactly.
//
// Every sequence is promised a number of blocks before it starts, takes out of that promise as it grows, and may be
// promised more out of what is free. The pool places nothing: libllama chooses cells itself, and since what is owned and promised never
// exceeds the pool, it always finds some.
#pragma once

#include <cstdint>
#include <map>

#include "base/units.h"

namespace fullstop::engine {

/// Names one answer for engine and backend; chosen by the caller, never reused while alive.
using SequenceId = std::uint64_t;

class BlockPool {
public:
    /// A pool of `total` tokens, rounded down to whole blocks of `block`.
    BlockPool(base::Tokens total, base::Tokens block);

    bool can_reserve(base::Tokens tokens) const { return base::blocks_for(tokens, block_) <= free(); }
    /// Asserts can_reserve().
    void reserve(SequenceId id, base::Tokens tokens);
    /// What it owns, its promise and what is free hold `tokens`.
    bool can_extend(SequenceId id, base::Tokens tokens) const;
    /// Promises it more, until it may hold `tokens`. Asserts can_extend().
    void extend(SequenceId id, base::Tokens tokens);
    /// The sequence now holds `tokens` in KV. Asserts that this is within its promise; it never shrinks.
    void grow(SequenceId id, base::Tokens tokens);
    /// Frees everything the sequence owned or was promised.
    void release(SequenceId id);

    /// Owned by or promised to one sequence.
    base::Blocks held(SequenceId id) const;
    base::Blocks total() const { return total_; }
    base::Blocks free() const { return total_ - owned_ - promised_; }
    base::Blocks owned() const { return owned_; }
    base::Blocks promised() const { return promised_; }  ///< reserved and not yet owned
    base::Tokens block_size() const { return block_; }
    /// Counts everything again: free + promised + owned == total, each part >= 0 and equal to its running sum.
    void check() const;

private:
    struct Holding {
        base::Blocks owned, promised;
    };
    base::Tokens block_;
    base::Blocks total_, owned_, promised_;
    std::map<SequenceId, Holding> holdings_;
};

}  // namespace fullstop::engine
