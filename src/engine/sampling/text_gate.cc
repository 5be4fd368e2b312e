// Two reasons to hold bytes back, decided on the pending bytes only: they never exceed one stop
// string and one character after a call.
#include "engine/sampling/text_gate.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace fullstop::engine {
namespace {

/// Moves the characters that end within the first `limit` bytes of `pending` out. `all`: up to its
/// end, and what is unfinished is replaced.
std::string take_characters(std::string& pending, std::size_t limit, bool all) {
    std::string out;
    std::size_t at = 0;
    while (at < limit) {
        const auto [shape, length] = base::front_character(std::string_view(pending).substr(at));
        if (!all && (shape == base::CharacterShape::kUnfinished || at + length > limit)) break;
        if (shape == base::CharacterShape::kWhole)
            out.append(pending, at, length);
        else
            out += base::kReplacementCharacter;
        at += length;
    }
    pending.erase(0, at);
    return out;
}

}  // namespace

std::string TextGate::take(std::size_t limit, bool all) {
    const std::size_t before = pending_.size();
    std::string out = take_characters(pending_, limit, all);
    shown_ += before - pending_.size();
    return out;
}

std::string TextGate::push(std::string_view bytes) {
    if (stopped_by_) return {};
    pending_ += bytes;
    if (find_stop()) return take(pending_.size(), true);
    return take(pending_.size() - held_for_stop(), false);
}

std::string TextGate::flush() { return take(pending_.size(), true); }

/// Cuts pending_ before the stop string that was completed first.
bool TextGate::find_stop() {
    std::size_t best_end = std::string::npos;
    const std::string* best = nullptr;
    for (const std::string& stop : stops_) {
        const std::size_t start = pending_.find(stop);
        if (start == std::string::npos) continue;
        const std::size_t end = start + stop.size();
        if (best == nullptr || end < best_end || (end == best_end && stop.size() > best->size())) {
            best_end = end;
            best = &stop;
        }
    }
    if (best == nullptr) return false;
    stopped_by_ = *best;
    pending_.resize(best_end - best->size());
    return true;
}

/// Length of the longest end of pending_ that begins a stop string.
std::size_t TextGate::held_for_stop() const {
    std::size_t held = 0;
    for (const std::string& stop : stops_) {
        for (std::size_t length = std::min(stop.size() - 1, pending_.size()); length > held;
             --length) {
            if (std::string_view(pending_).ends_with(std::string_view(stop).substr(0, length))) {
                held = length;
                break;
            }
        }
    }
    return held;
}

}  // namespace fullstop::engine
