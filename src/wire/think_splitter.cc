// A three-state machine; in the usual state (answer, no tag anywhere) one append and one short search per event.
#include "wire/think_splitter.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fullstop::wire {
namespace {

struct Tag {
    std::string_view open, close;
};
constexpr std::array<Tag, 2> kTags = {{{"<think>", "</think>"}, {"<thinking>", "</thinking>"}}};
constexpr std::size_t kLongestClose = kTags[1].close.size();

/// Length of the longest end of `text` that begins `word`.
std::size_t overlap(std::string_view text, std::string_view word) {
    for (std::size_t n = std::min(text.size(), word.size() - 1); n > 0; --n)
        if (text.ends_with(word.substr(0, n))) return n;
    return 0;
}

}  // namespace

bool ThinkSplitter::feed(std::string_view piece, std::string& reasoning, std::string& text) {
    if (state_ != State::kAnswer) {
        held_.append(piece);
        state_ == State::kStart ? start(reasoning, text) : think(reasoning, text);
        return false;
    }
    const std::size_t before = text.size();
    text.append(piece);
    if (tag_seen_) return false;
    const std::size_t from = before > kLongestClose ? before - kLongestClose : 0;
    for (const Tag& tag : kTags) {
        const std::size_t at = text.find(tag.close, from);
        if (at == std::string::npos) continue;
        tag_seen_ = true;
        reasoning.append(text, 0, at);
        text.erase(0, at + tag.close.size());
        return true;
    }
    return false;
}

void ThinkSplitter::start(std::string& reasoning, std::string& text) {
    const std::size_t first = std::min(held_.find_first_not_of(" \t\r\n"), held_.size());
    const std::string_view rest = std::string_view(held_).substr(first);
    for (const Tag& tag : kTags) {
        if (rest.starts_with(tag.open)) {
            state_ = State::kThinking;
            tag_seen_ = true;
            closer_ = tag.close;
            held_.erase(0, first + tag.open.size());
            return think(reasoning, text);
        }
        if (tag.open.starts_with(rest)) return;  // still possible, also with nothing but white space so far
    }
    state_ = State::kAnswer;
    const std::string all = std::exchange(held_, {});
    feed(all, reasoning, text);
}

void ThinkSplitter::think(std::string& reasoning, std::string& text) {
    const std::size_t at = held_.find(closer_);
    if (at == std::string::npos) {
        const std::size_t keep = overlap(held_, closer_);
        reasoning.append(held_, 0, held_.size() - keep);
        held_.erase(0, held_.size() - keep);
        return;
    }
    reasoning.append(held_, 0, at);
    held_.erase(0, at + closer_.size());
    state_ = State::kStart;
    start(reasoning, text);
}

void ThinkSplitter::finish(std::string& reasoning, std::string& text) {
    (state_ == State::kThinking ? reasoning : text).append(held_);
    held_.clear();
}

}  // namespace fullstop::wire
