// What one step asks of the machine, in the numbers that decide its time: rows, what they attend
// to, and outputs.
//
// A step is one or more passes over the weights. In the unified layout all runs go together in one
// pass. In the streams layout each prompt piece is a pass of its own and all single rows are
// another (adapters/llama/backend.cc).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "engine/backend.h"

namespace fullstop::engine {

/// One pass over the weights.
struct PassShape {
    std::int64_t rows = 0;
    std::int64_t outputs = 0;  ///< rows whose logits are wanted; a token is chosen from each
    double row_kv = 0;         ///< Σ over rows of the tokens that row attends to, itself included
    double row_foreign = 0;    ///< Σ over rows of other sequences' tokens in the same pool, which a
                               ///< unified pass walks past

    void add(const PassShape& other);
    bool operator==(const PassShape&) const = default;
};

/// `rows` consecutive rows that begin at `position`, in a pool where other sequences hold `foreign`
/// tokens.
PassShape rows_at(base::Tokens position, std::int64_t rows, bool wants_logits,
                  base::Tokens foreign = {});

class StepShape {
public:
    /// As ModelFacts.layout says.
    explicit StepShape(bool streams) : streams_(streams) {}
    /// All `runs` of a step, with `in_kv` tokens in the pool before it.
    StepShape(bool streams, std::span<const Run> runs, base::Tokens in_kv);

    void add(const PassShape& run);
    bool streams() const { return streams_; }
    std::span<const PassShape> passes() const { return passes_; }

private:
    bool streams_;
    bool has_together_ = false;      ///< passes_.front() is the one that runs share
    std::vector<PassShape> passes_;  ///< none is empty
};

}  // namespace fullstop::engine
