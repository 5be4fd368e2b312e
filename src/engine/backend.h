// What the engine asks of a model: text to tokens and back, one batch at a time, and room in KV by
// sequence.
//
// Two implementations: adapters/llama (libllama) and a simulated one (a stream of tokens from a
// seed). Used by one thread. A backend keeps no policy: which rows run, and when, is the engine's
// decision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answer/request.h"
#include "base/result.h"
#include "base/units.h"
#include "engine/sampling/sampler.h"
#include "engine/scheduling/block_pool.h"

namespace fullstop::engine {

/// kStreams: each sequence owns its window. kUnified: sequences of any length share one pool.
enum class KvLayout { kStreams, kUnified };
/// Of keys and values in KV memory.
enum class KvType { kQ8_0, kF16 };
constexpr std::string_view to_string(KvLayout layout) {
    return layout == KvLayout::kStreams ? "streams" : "unified";
}
constexpr std::string_view to_string(KvType type) { return type == KvType::kQ8_0 ? "q8_0" : "f16"; }
/// As flags and documents name them; absent: there is none of that name.
constexpr std::optional<KvLayout> kv_layout_of(std::string_view name) {
    if (name == to_string(KvLayout::kStreams)) return KvLayout::kStreams;
    if (name == to_string(KvLayout::kUnified)) return KvLayout::kUnified;
    return std::nullopt;
}
constexpr std::optional<KvType> kv_type_of(std::string_view name) {
    if (name == to_string(KvType::kQ8_0)) return KvType::kQ8_0;
    if (name == to_string(KvType::kF16)) return KvType::kF16;
    return std::nullopt;
}

struct ModelFacts {
    std::string name;  ///< as clients may call it
    KvLayout layout = KvLayout::kStreams;
    KvType kv_type = KvType::kQ8_0;
    base::Tokens window;  ///< tokens one sequence may hold
    base::Tokens pool;    ///< tokens all sequences may hold together; whole blocks (limits.h), at
                          ///< least one window
    base::Bytes kv_bytes_per_token;
    std::int64_t max_sequences = 1;
    std::int64_t vocabulary = 0;
    int threads = 1;
    std::string device =
        "CPU";  ///< what computes, for people: "CPU", "all layers on Vulkan0 (name)"
    std::int64_t gpu_layers = 0;  ///< computed on GPUs
    bool shares = false;  ///< several sequences can hold the same beginning in the same cells
    /// Layers forget what lies so many tokens back; of a longer sequence only all of it can be used
    /// again, not its beginning.
    std::optional<base::Tokens> sliding_window = {};
    bool pads = false;  ///< a lone row is computed with a padding row beside it, so that company
                        ///< changes no bit
    /// "verified": the check at the start found the same bits alone, in company and after a pause;
    /// "not verified"; "off".
    std::string load_invariant = "not verified";
    std::string no_chat = {};  ///< why conversations are refused; "": they are not
};

/// Consecutive tokens of one sequence, beginning at `position` (the number of tokens it has in KV).
struct Run {
    SequenceId sequence = 0;
    base::Tokens position;
    std::span<const TokenId> tokens;
    bool wants_logits = false;  ///< of its last token
};

enum class DecodeStatus {
    kOk,
    kNoRoom,   ///< no free KV cells; nothing changed. With exact accounting this is a bug
    kAborted,  ///< stopped from outside; some runs may be in KV
    kFatal,    ///< the computation failed; some runs may be in KV
};

/// A prompt as the model reads it. One that is sure to fill the window is not read: that could take
/// seconds, in which every running answer would stand still.
struct PromptTokens {
    std::vector<TokenId> tokens = {};
    std::optional<base::Tokens> at_least =
        {};  ///< it has at least so many, which is no less than the window; `tokens` is empty
};

class Backend {
public:
    virtual ~Backend() = default;
    virtual const ModelFacts& facts() const = 0;

    /// Control tokens written out in `text` are recognised; a beginning-of-text token is added if
    /// the model wants one.
    virtual PromptTokens tokenize(std::string_view text) const = 0;
    /// Bytes of one token; may be a part of a character. Control tokens have none.
    virtual std::string piece(TokenId token) const = 0;
    /// The model ends its answer with this token.
    virtual bool is_end(TokenId token) const = 0;
    /// The conversation in the model's own template, ready for the assistant's turn; one that ends
    /// with the assistant's words is ready to go on behind them. What messages hold is text: a
    /// control token written out there is none. Errors: the template is unknown, or does not take
    /// the conversation.
    virtual base::Result<PromptTokens> chat_tokens(
        std::span<const answer::Message> messages) const = 0;
    /// The same as text, without the beginning-of-text token that the model adds of its own accord.
    /// Errors: the same.
    virtual base::Result<std::string> chat_text(
        std::span<const answer::Message> messages) const = 0;

    /// For one answer whose whole text is to be derived from the rule `root` of `grammar` (GBNF, as
    /// schema/grammar.h writes it). Errors: this backend takes no grammars, or not this one.
    virtual base::Result<std::unique_ptr<TokenConstraint>> constrain(
        const std::string& grammar) = 0;

    /// Computes all runs; blocks as long as that takes. A new sequence id takes a free place. At
    /// most one run a sequence.
    virtual DecodeStatus decode(std::span<const Run> runs) = 0;
    /// Logits of runs[index] of the last decode, which must have wanted them. Valid until the next
    /// decode.
    virtual std::span<const float> logits(std::size_t index) const = 0;
    /// The sequence's place and cells are free at once. Unknown ids are ignored: a sequence may end
    /// before its first run.
    virtual void remove(SequenceId sequence) = 0;

    /// A copy in host memory of the sequence's KV from token `from` on, from which restore() or
    /// append() brings back the same bits. Empty: there is none to be had, and the tokens must be
    /// computed again.
    virtual std::vector<std::byte> snapshot(SequenceId sequence, base::Tokens from) = 0;
    /// The sequence, which has no place, takes one and holds the first `keep` of the `length`
    /// tokens of a snapshot from 0 on. All of them are in KV for a moment. False: it did not fit or
    /// match, or it lacks what a sliding window forgot; nothing changed.
    virtual bool restore(SequenceId sequence, base::Tokens length, base::Tokens keep,
                         std::span<const std::byte> snapshot) = 0;
    /// The sequence gets the `length` tokens of a snapshot that was made from its length on. False:
    /// it did not fit or did not match; nothing changed. Only with facts().shares.
    virtual bool append(SequenceId sequence, base::Tokens length,
                        std::span<const std::byte> snapshot) = 0;
    /// `to`, which has no place, takes one and holds the first `length` tokens of `from`, in the
    /// same cells. Only with facts().shares.
    virtual void share(SequenceId from, SequenceId to, base::Tokens length) = 0;
};

}  // namespace fullstop::engine
