// In order because of libllama's search: it starts behind the last cell it filled, and only a removal leads it back.
#include "adapters/llama/kv_cells.h"

#include <utility>

#include "base/assert.h"

namespace fullstop::adapters::llama {

KvCells::KvCells(llama_context& context, std::optional<int> grave) : context_(context), memory_(llama_get_memory(&context)), grave_(grave) {}

void KvCells::clear() {
    llama_memory_clear(memory_, false);
    end_ = 0;
}

void KvCells::free_or_bury(int place) {
    if (grave_) llama_memory_seq_cp(memory_, place, *grave_, -1, -1);
    llama_memory_seq_rm(memory_, place, -1, -1);
}

void KvCells::remove(engine::SequenceId sequence) {
    const auto place = places_.find(sequence);
    if (!place) return;
    free_or_bury(*place);
    if (const auto move = places_.release(sequence)) relocate(move->from, move->to);
    if (grave_ && places_.used() == 0) clear();
}

void KvCells::relocate(int from, int to) {
    const bool streams = llama_n_ctx_seq(&context_) < llama_n_ctx(&context_);
    if (!streams) {
        llama_memory_seq_cp(memory_, from, to, -1, -1);  // the same cells under another id
    } else if (next_position(from) > 0) {
        const std::vector<std::byte> bytes = copy_of(from);
        const bool done = llama_state_seq_set_data(&context_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), to) > 0;
        FULLSTOP_ASSERT(done, "a stream that is free holds what another one of its size held");
    }
    llama_memory_seq_rm(memory_, from, -1, -1);
}

std::vector<std::byte> KvCells::copy_of(int place) const {
    std::vector<std::byte> bytes(llama_state_seq_get_size(&context_, place));
    const std::size_t written = llama_state_seq_get_data(&context_, reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size(), place);
    bytes.resize(written);
    return bytes;
}

std::vector<std::byte> KvCells::snapshot(engine::SequenceId sequence) const {
    const auto place = places_.find(sequence);
    return place ? copy_of(*place) : std::vector<std::byte>();
}

bool KvCells::restore(engine::SequenceId sequence, base::Tokens length, base::Tokens keep, std::span<const std::byte> snapshot) {
    if (!prepare(length.count)) return false;
    const int place = places_.take(sequence);
    const bool done = llama_state_seq_set_data(&context_, reinterpret_cast<const std::uint8_t*>(snapshot.data()), snapshot.size(), place) > 0;
    if (!done) {
        remove(sequence);
        return false;
    }
    if (keep < length) forget_from(place, static_cast<llama_pos>(keep.count));
    computed(keep.count);
    return true;
}

bool KvCells::prepare(std::int64_t rows) {
    const auto all = static_cast<std::int64_t>(llama_n_ctx(&context_));
    if (!grave_ || end_ + rows <= all) return true;
    return compact() && end_ + rows <= all;
}

bool KvCells::compact() {
    std::vector<std::pair<int, std::vector<std::byte>>> living;
    for (int place = 0; place < places_.used(); ++place)
        if (next_position(place) > 0) living.emplace_back(place, copy_of(place));
    clear();
    ++compactions_;
    for (const auto& [place, bytes] : living) {
        if (llama_state_seq_set_data(&context_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), place) == 0) return false;
        end_ += next_position(place);
        moved_ += base::Bytes{std::ssize(bytes)};
    }
    return true;
}

}  // namespace fullstop::adapters::llama
