// A grammar over one answer: engine::TokenConstraint by libllama's own grammar sampler, which is
// used for masking only.
//
// libllama believes that a control token adds its written name to the text, and takes any bytes for
// UTF-8 once the first of a character has come. The answer shows neither, so that a value would be
// another one than the grammar was told. Such tokens are refused before it is asked.
#pragma once

#include <llama.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/sampling/token_constraint.h"

namespace fullstop::adapters::llama {

/// What tokens add to the text.
class TokenBytes {
public:
    void add(std::string_view piece);
    /// Behind the beginning of a character (`pending`; mostly there is none) its bytes make
    /// characters, of which the last one may be unfinished.
    bool fits(engine::TokenId token, std::string_view pending) const;
    /// `pending`, as the token leaves it.
    std::string pending_after(engine::TokenId token, std::string_view pending) const;

private:
    enum class Shape : std::uint8_t {
        kNothing,  ///< shows nothing, or could be no part of UTF-8
        kWhole,    ///< characters
        kPart,     ///< begins or ends within a character
    };
    std::vector<Shape> shapes_;
    std::map<engine::TokenId, std::string> parts_;
};

/// `vocabulary` outlives it. Errors: libllama does not take the grammar. It must be one of ours:
/// libllama does not survive every grammar that a client could write (some never end, some take a
/// time exponential in their length).
base::Result<std::unique_ptr<engine::TokenConstraint>> make_grammar(
    const llama_vocab* vocabulary, std::shared_ptr<const TokenBytes> bytes,
    const std::string& grammar);

}  // namespace fullstop::adapters::llama
