// Which tokens may come next in an answer that was promised a form (response_format): asked before
// a token is chosen, told after. Made by a Backend from a grammar, because only a tokenizer knows
// what its tokens spell. It lives with the sequence, as the sampler does, so that a pause changes
// nothing of it.
#pragma once

#include <cstdint>
#include <vector>

namespace fullstop::engine {

using TokenId = std::int32_t;

class TokenConstraint {
public:
    virtual ~TokenConstraint() = default;
    /// Takes out of `tokens` those that may not come next; the order of the others stays. End
    /// tokens may come where the form is complete, and nowhere else. None left of all tokens: the
    /// answer cannot go on.
    virtual void keep_allowed(std::vector<TokenId>& tokens) = 0;
    /// `token`, which is allowed and is no end token, was chosen.
    virtual void accept(TokenId token) = 0;
};

}  // namespace fullstop::engine
