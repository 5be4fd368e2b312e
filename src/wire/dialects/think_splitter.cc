// A three-state machine; in the usual state (answer, no tag anywhere) one append and one short
// search per event.
#include "wire/dialects/think_splitter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "wire/limits.h"

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
    if (state_ == State::kAnswer) return answer(piece, reasoning, text);
    held_.append(piece);
    std::size_t at = 0;
    while (state_ != State::kAnswer &&
           (state_ == State::kStart ? start(at) : think(at, reasoning))) {
    }
    held_.erase(0, at);
    if (state_ == State::kAnswer) answer(std::exchange(held_, {}), reasoning, text);
    return false;
}

bool ThinkSplitter::answer(std::string_view piece, std::string& reasoning, std::string& text) {
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

bool ThinkSplitter::start(std::size_t& at) {
    const std::size_t first = std::min(held_.find_first_not_of(" \t\r\n", at), held_.size());
    const std::string_view rest = std::string_view(held_).substr(first);
    for (const Tag& tag : kTags) {
        if (rest.starts_with(tag.open)) {
            state_ = State::kThinking;
            tag_seen_ = true;
            closer_ = tag.close;
            at = first + tag.open.size();
            return true;
        }
        if (tag.open.starts_with(rest) && first - at <= kMaxLeadingSpace)
            return false;  // still possible, also with nothing but white space so far
    }
    state_ = State::kAnswer;
    return true;
}

bool ThinkSplitter::think(std::size_t& at, std::string& reasoning) {
    const std::size_t close = held_.find(closer_, at);
    if (close == std::string::npos) {
        const std::size_t end = held_.size() - overlap(std::string_view(held_).substr(at), closer_);
        reasoning.append(held_, at, end - at);
        at = end;
        return false;
    }
    reasoning.append(held_, at, close - at);
    at = close + closer_.size();
    state_ = State::kStart;
    return true;
}

void ThinkSplitter::finish(std::string& reasoning, std::string& text) {
    (state_ == State::kThinking ? reasoning : text).append(held_);
    held_.clear();
}

}  // namespace fullstop::wire
