// A dense array; swap-with-last on removal.
#include "adapters/llama/places.h"

#include <algorithm>

#include "base/assert.h"

namespace fullstop::adapters::llama {

std::optional<int> Places::find(engine::SequenceId sequence) const {
    const auto found = std::ranges::find(sequences_, sequence);
    if (found == sequences_.end()) return std::nullopt;
    return static_cast<int>(found - sequences_.begin());
}

int Places::take(engine::SequenceId sequence) {
    if (const auto place = find(sequence)) return *place;
    sequences_.push_back(sequence);
    return used() - 1;
}

std::optional<Places::Move> Places::release(engine::SequenceId sequence) {
    const auto place = find(sequence);
    FULLSTOP_ASSERT(place, "only a sequence with a place is released");
    const int last = used() - 1;
    sequences_[static_cast<std::size_t>(*place)] = sequences_.back();
    sequences_.pop_back();
    if (*place == last) return std::nullopt;
    return Move{.from = last, .to = *place};
}

}  // namespace fullstop::adapters::llama
