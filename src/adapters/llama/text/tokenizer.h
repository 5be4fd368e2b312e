// From text to tokens, so that what a user wrote can never be one of the model's control tokens.
//
// libllama's own way is one text in which control tokens are recognised wherever they stand: a user
// who writes "<|im_end|>" ends his turn and begins another. Here the Jinja engine says which bytes
// come from messages. A conversation whose messages hold no control token takes libllama's way, so
// ordinary text has the tokens it always had. Otherwise the text is cut at the control tokens that
// the template itself wrote, and what stands between is read without any. (The cuts are libllama's
// own, so merges across the seam of template and message stay as they are.) Tokens that a model
// calls user-defined are ordinary text to it, and stay recognised. Raw prompts are the caller's own
// template: all is recognised.
#pragma once

#include <llama.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/llama/text/chat_template.h"
#include "adapters/llama/text/control_tokens.h"
#include "adapters/llama/text/length_bound.h"
#include "engine/backend.h"
#include "engine/sampling/sampler.h"

namespace fullstop::adapters::llama {

class Tokenizer {
public:
    /// `vocabulary` outlives it.
    explicit Tokenizer(const llama_vocab* vocabulary);

    /// Control tokens in `text` are recognised.
    std::vector<engine::TokenId> tokenize(std::string_view text) const;
    /// Those of template parts only. Absent: a control token came out of plain text all the same,
    /// which no tokenizer is known to do.
    std::optional<std::vector<engine::TokenId>> tokenize_apart(
        std::span<const TextPart> parts) const;

    /// Never more than any of the two makes of `text`, and known at once.
    base::Tokens least_tokens(std::string_view text) const { return bound_.least_tokens(text); }

    /// The first control token written out in `text`; "" when there is none.
    std::string_view control_in(std::string_view text) const;
    /// A control token stands in the text to which a message gave at least one byte.
    bool messages_make_control(std::span<const TextPart> parts) const;
    /// Those that the template wrote, in their order.
    std::vector<engine::TokenId> controls_of_template(std::span<const TextPart> parts) const;
    /// `text` with a blank inside each control token, so that it is none.
    std::string broken(std::string_view text) const;

private:
    std::vector<engine::TokenId> call(std::string_view text, bool ends, bool control) const;

    const llama_vocab* vocabulary_;
    ControlTokens controls_;
    LengthBound bound_;
};

/// The texts of `parts` as one.
std::string joined(std::span<const TextPart> parts);

/// A text as tokens, as far as it could leave room in `window` (engine::Backend::tokenize).
engine::PromptTokens text_tokens(const Tokenizer& tokenizer, std::string_view text,
                                 base::Tokens window);

/// A conversation in the model's own template, in the same way. Errors: the template does not take
/// it, or mixes its own words with a message that holds a control token, so that the two cannot be
/// told apart.
base::Result<engine::PromptTokens> chat_tokens(const ChatTemplate& form, const Tokenizer& tokenizer,
                                               std::span<const answer::Message> messages,
                                               base::Tokens window);

}  // namespace fullstop::adapters::llama
