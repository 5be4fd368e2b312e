// How many tokens a text has at least, known from its bytes in microseconds; reading it as tokens
// can take seconds.
//
// Every byte of a text lies in some token, and a token covers a piece of the vocabulary. So a byte
// costs at least its share in the longest piece that holds it, and the shares of a whole text are a
// lower bound: tight for the long runs of one character that are slowest to read, loose for words.
// Where a tokenizer may drop bytes, or one token may stand for a text that is no piece, nothing is
// claimed (see length_bound.cc).
#pragma once

#include <llama.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/units.h"

namespace fullstop::adapters::llama {

class LengthBound {
public:
    explicit LengthBound(const llama_vocab* vocabulary);
    /// All that one token can cover. `drops_blanks`: white space may vanish beside some of them.
    LengthBound(std::span<const std::string> pieces, bool drops_blanks);

    /// Never more than the tokenizer makes of `text`; 0: nothing is known.
    base::Tokens least_tokens(std::string_view text) const;

private:
    void read(std::span<const std::string> pieces, bool drops_blanks);

    std::array<std::uint64_t, 256>
        share_{};  ///< of a byte in one token, rounded down: kWhole is a whole one
};

}  // namespace fullstop::adapters::llama
