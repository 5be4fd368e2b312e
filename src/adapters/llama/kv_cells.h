// libllama's KV as the backend uses it: which sequence id each answer has, which cells are free,
// copies out and in.
//
// With `in_order` (unified layout) each answer's cells lie in the order of its tokens, since
// attention adds up in the order of cells and another order gives other bits. libllama fills the
// lowest free cell first, so what ends is only buried, not freed; when the end of the pool is
// reached, the living are copied out, the pool is cleared, and they are copied in again one after
// the other, a beginning that several share (unified layout) once. Internal to this folder.
#pragma once

#include <llama.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "adapters/llama/places.h"
#include "base/units.h"

namespace fullstop::adapters::llama {

class KvCells {
public:
    /// `window`: of the layers that forget what lies further back; 0: none do. `grave`: a sequence
    /// id of its own for what was buried; absent: cells are freed at once. `scratch`: one that
    /// holds nothing between calls.
    KvCells(llama_context& context, base::Tokens window, std::optional<int> grave, int scratch);

    std::optional<int> find(engine::SequenceId sequence) const { return places_.find(sequence); }
    int take(engine::SequenceId sequence);
    /// Its place is free at once; unknown ids are ignored.
    void remove(engine::SequenceId sequence);
    /// Position that follows the last token of a place.
    llama_pos next_position(int place) const {
        return llama_memory_seq_pos_max(memory_, place) + 1;
    }
    void forget_from(int place, llama_pos position) {
        llama_memory_seq_rm(memory_, place, position, -1);
    }
    void clear();

    /// From a token on. Empty: libllama could not say.
    std::vector<std::byte> snapshot(engine::SequenceId sequence, base::Tokens from);
    /// Behind what the sequence holds. False: it did not fit; nothing changed.
    bool append(engine::SequenceId sequence, base::Tokens length,
                std::span<const std::byte> snapshot);
    /// False: it did not fit; the sequence has no place.
    bool restore(engine::SequenceId sequence, base::Tokens length, base::Tokens keep,
                 std::span<const std::byte> snapshot);

    /// `to`, which has no place, takes one and holds the first tokens of `from` in the same cells.
    /// Unified layout only.
    void share(engine::SequenceId from, engine::SequenceId to, base::Tokens length);

    /// Makes room at the end for `rows` rows. False: the living could not be brought back, and all
    /// is lost.
    bool prepare(std::int64_t rows);
    void computed(std::int64_t rows) { end_ += rows; }

    base::Bytes moved() const { return moved_; }  ///< by compaction, in all
    std::int64_t compactions() const { return compactions_; }

private:
    /// A stretch of cells that places have in common, up to a position; two places share as far as
    /// their stretches are the same.
    struct Stretch {
        std::uint64_t id = 0;
        llama_pos end = 0;
    };
    using Beginning = std::vector<Stretch>;
    static llama_pos common(const Beginning& a, const Beginning& b);

    std::vector<std::byte> copy_of(int place) const;
    std::vector<std::byte> copy_behind(int place, llama_pos position);
    bool put_behind(int place, std::span<const std::byte> bytes);
    bool compact();
    void free_or_bury(int place);
    /// At once. libllama copies between streams only when the next pass begins: a copy out before
    /// that would read what was there before, and a copy into the old place would be taken along.
    void relocate(int from, int to);

    llama_context& context_;
    llama_memory_t memory_;
    base::Tokens window_;
    std::optional<int> grave_;
    int scratch_;
    std::vector<Beginning> beginnings_;  ///< by place
    std::uint64_t next_stretch_ = 1;
    Places places_;
    std::int64_t end_ =
        0;  ///< with a grave: the first cell that was not used since the last clearing
    base::Bytes moved_;
    std::int64_t compactions_ = 0;
};

}  // namespace fullstop::adapters::llama
