// Separates thinking that a server left inside its content (`<think>...</think>`, closed or not)
// from the answer.
//
// A tag counts as opening only where nothing but white space of the answer stands before it, so
// that an answer which speaks about tags stays whole. A closing tag without an opening one means
// that the template had opened it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fullstop::wire {

class ThinkSplitter {
public:
    /// Appends `piece` to the right one of the two. True when text that was taken for the answer
    /// moved to `reasoning`.
    bool feed(std::string_view piece, std::string& reasoning, std::string& text);
    /// The content is over: what was held back as the possible start of a tag is text after all.
    void finish(std::string& reasoning, std::string& text);

private:
    enum class State { kStart, kThinking, kAnswer };
    // Each reads on in held_ from `at`, which it moves, and is false when more bytes are needed.
    bool start(std::size_t& at);
    bool think(std::size_t& at, std::string& reasoning);
    bool answer(std::string_view piece, std::string& reasoning, std::string& text);

    State state_ = State::kStart;
    std::string held_;  ///< white space and a possible opening tag, or a possible closing tag
    std::string_view closer_;  ///< of the tag that opened
    bool tag_seen_ = false;
};

}  // namespace fullstop::wire
