// Which libllama sequence id each answer uses. Ids in use are always 0..n-1: libllama computes
// neighbouring streams in one pass over the weights, and a hole between them would cost a second
// one.
#pragma once

#include <optional>
#include <vector>

#include "engine/scheduling/block_pool.h"

namespace fullstop::adapters::llama {

class Places {
public:
    /// The last id in use moves into the hole that a removal left.
    struct Move {
        int from = 0, to = 0;
        bool operator==(const Move&) const = default;
    };

    std::optional<int> find(engine::SequenceId sequence) const;
    /// The place of `sequence`; a new one takes the next id.
    int take(engine::SequenceId sequence);
    /// `sequence` must have a place.
    std::optional<Move> release(engine::SequenceId sequence);
    int used() const { return static_cast<int>(sequences_.size()); }

private:
    std::vector<engine::SequenceId> sequences_;  ///< index: libllama's id
};

}  // namespace fullstop::adapters::llama
