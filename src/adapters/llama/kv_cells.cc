// In order because of libllama's search: it starts behind the last cell it filled, and only a
// removal leads it back.
#include "adapters/llama/kv_cells.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace fullstop::adapters::llama {

KvCells::KvCells(llama_context& context, base::Tokens window, std::optional<int> grave, int scratch)
    : context_(context),
      memory_(llama_get_memory(&context)),
      window_(window),
      grave_(grave),
      scratch_(scratch) {}

int KvCells::take(engine::SequenceId sequence) {
    const int place = places_.take(sequence);
    beginnings_.resize(static_cast<std::size_t>(places_.used()));
    return place;
}

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
    beginnings_[static_cast<std::size_t>(*place)] = std::exchange(beginnings_.back(), {});
    beginnings_.pop_back();
    if (const auto move = places_.release(sequence)) relocate(move->from, move->to);
    if (grave_ && places_.used() == 0) clear();
}

void KvCells::relocate(int from, int to) {
    const bool streams = llama_n_ctx_seq(&context_) < llama_n_ctx(&context_);
    if (!streams) {
        llama_memory_seq_cp(memory_, from, to, -1, -1);  // the same cells under another id
    } else if (next_position(from) > 0) {
        const std::vector<std::byte> bytes = copy_of(from);
        const bool done =
            llama_state_seq_set_data(&context_, reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                     bytes.size(), to) > 0;
        FULLSTOP_ASSERT(done, "a stream that is free holds what another one of its size held");
    }
    llama_memory_seq_rm(memory_, from, -1, -1);
}

std::vector<std::byte> KvCells::copy_of(int place) const {
    std::vector<std::byte> bytes(llama_state_seq_get_size(&context_, place));
    const std::size_t written = llama_state_seq_get_data(
        &context_, reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size(), place);
    bytes.resize(written);
    return bytes;
}

std::vector<std::byte> KvCells::snapshot(engine::SequenceId sequence, base::Tokens from) {
    const auto place = places_.find(sequence);
    return place ? copy_behind(*place, static_cast<llama_pos>(from.count))
                 : std::vector<std::byte>();
}

bool KvCells::append(engine::SequenceId sequence, base::Tokens length,
                     std::span<const std::byte> snapshot) {
    const auto place = places_.find(sequence);
    if (!place || !prepare(length.count) || !put_behind(*place, snapshot)) return false;
    computed(length.count);
    return true;
}

bool KvCells::restore(engine::SequenceId sequence, base::Tokens length, base::Tokens keep,
                      std::span<const std::byte> snapshot) {
    // libllama copies no cell that lies behind the window of its layer, and the next token of a
    // beginning would look for it.
    if (keep < length && window_.count > 0 && length > window_) return false;
    if (!prepare(length.count)) return false;
    const int place = take(sequence);
    const bool done =
        llama_state_seq_set_data(&context_, reinterpret_cast<const std::uint8_t*>(snapshot.data()),
                                 snapshot.size(), place) > 0;
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

llama_pos KvCells::common(const Beginning& a, const Beginning& b) {
    llama_pos end = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i].id == b[i].id; ++i) {
        end = std::min(a[i].end, b[i].end);
        if (a[i].end != b[i].end) break;
    }
    return end;
}

void KvCells::share(engine::SequenceId from, engine::SequenceId to, base::Tokens length) {
    const int place = take(to), source = *find(from);
    const auto end = static_cast<llama_pos>(length.count);
    Beginning& theirs = beginnings_[static_cast<std::size_t>(source)];
    if (theirs.empty() || theirs.back().end < end) theirs.push_back({next_stretch_++, end});
    Beginning& own = beginnings_[static_cast<std::size_t>(place)];
    for (const Stretch& stretch : theirs) {
        own.push_back({stretch.id, std::min(stretch.end, end)});
        if (stretch.end >= end) break;
    }
    llama_memory_seq_cp(memory_, source, place, 0, end);
}

/// Of what a place holds from a position on.
std::vector<std::byte> KvCells::copy_behind(int place, llama_pos position) {
    if (position == 0) return copy_of(place);
    if (position == next_position(place)) return {};
    llama_memory_seq_cp(memory_, place, scratch_, position, -1);
    std::vector<std::byte> bytes = copy_of(scratch_);
    llama_memory_seq_rm(memory_, scratch_, -1, -1);
    return bytes;
}

bool KvCells::put_behind(int place, std::span<const std::byte> bytes) {
    if (bytes.empty()) return true;
    const bool done =
        llama_state_seq_set_data(&context_, reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                 bytes.size(), scratch_) > 0;
    llama_memory_seq_cp(memory_, scratch_, place, -1, -1);
    llama_memory_seq_rm(memory_, scratch_, -1, -1);
    return done;
}

bool KvCells::compact() {
    struct Living {
        int place, with;  ///< with: an earlier one that has the same beginning
        llama_pos shared, length;
        std::vector<std::byte> rest;
    };
    std::vector<Living> living;
    for (int place = 0; place < places_.used(); ++place) {
        Living next{
            .place = place, .with = 0, .shared = 0, .length = next_position(place), .rest = {}};
        if (next.length == 0) continue;
        for (const Living& before : living) {
            const llama_pos same = common(beginnings_[static_cast<std::size_t>(before.place)],
                                          beginnings_[static_cast<std::size_t>(place)]);
            if (same > next.shared) next.with = before.place, next.shared = same;
        }
        next.rest = copy_behind(place, next.shared);
        living.push_back(std::move(next));
    }
    clear();
    ++compactions_;
    for (const Living& each : living) {
        if (each.shared > 0) llama_memory_seq_cp(memory_, each.with, each.place, 0, each.shared);
        if (!put_behind(each.place, each.rest)) return false;
        end_ += each.length - each.shared;
        moved_ += base::Bytes{std::ssize(each.rest)};
    }
    return true;
}

}  // namespace fullstop::adapters::llama
