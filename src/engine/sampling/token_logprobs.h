// How probable each token of an answer was, and what else could have stood there.
//
// Log-probabilities are of the model's own distribution: log-softmax of the raw logits, before
// penalties, bias, temperature and cuts, as llama.cpp and vLLM report them by default. So beside a
// response format the chosen token may look improbable, and the alternatives may be tokens that the
// format refused: what the model would have said. They travel with the text: a token is reported
// when its last byte is shown, so that text held back (half a character, the beginning of a stop
// string) and its tokens come together.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "engine/backend.h"

namespace fullstop::engine {

struct TokenLogprob {
    std::string bytes;  ///< may be a part of a character; empty for control tokens
    double logprob = 0;
};
/// One token of the answer and the most probable ones of its place, the first the most probable.
struct ShownToken {
    TokenLogprob chosen;
    std::vector<TokenLogprob> top;
};

class TokenLogprobs {
public:
    /// `top`: how many alternatives each token gets.
    explicit TokenLogprobs(int top) : top_(static_cast<std::size_t>(top)) {}

    /// `chosen` was taken from `logits`. They hold at least one finite number.
    void add(const Backend& backend, std::span<const float> logits, TokenId chosen);
    /// Those whose bytes are all among the first `shown` bytes of the answer. Each comes out once.
    std::vector<ShownToken> take(std::size_t shown);
    /// The answer is over: also one whose bytes were shown in part. What a stop string swallowed is
    /// dropped.
    std::vector<ShownToken> finish(std::size_t shown);

private:
    struct Waiting {
        ShownToken token;
        std::size_t begin = 0, end = 0;  ///< its bytes within the answer
    };
    std::size_t top_;
    std::size_t length_ = 0;  ///< of all bytes so far
    std::deque<Waiting> waiting_;
};

}  // namespace fullstop::engine
