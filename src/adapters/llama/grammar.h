// A grammar over one answer: engine::TokenConstraint by libllama's own grammar sampler, which is used for masking only.
//
// libllama believes that a control token adds its written name to the text, and trusts the bytes of tokens; the answer shows
// neither. So tokens that show nothing, or whose bytes could not be a part of UTF-8, are refused before it is asked.
#pragma once

#include <llama.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/token_constraint.h"

namespace fullstop::adapters::llama {

/// By token: it adds to the text what the grammar is told that it adds.
using PlainTokens = std::vector<bool>;
/// Whether the text of a token is something, without NUL, and UTF-8 but for a character that is cut at either end.
bool is_plain(std::string_view piece);

/// `vocabulary` outlives it. Errors: libllama does not take the grammar. It must be one of ours: libllama does not survive every
/// grammar that a client could write (some never end, some take a time exponential in their length).
base::Result<std::unique_ptr<engine::TokenConstraint>> make_grammar(const llama_vocab* vocabulary, std::shared_ptr<const PlainTokens> plain,
                                                                    const std::string& grammar);

}  // namespace fullstop::adapters::llama
