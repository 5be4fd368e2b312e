// One answer while the engine holds it: its tokens, what of them is in KV, and its own sampler and
// text. Owned by Engine: queued, prefilling, decoding; when memory or a place is short, back to the
// queue with all its tokens and perhaps a snapshot of its KV (a pause).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/answer_end.h"
#include "engine/sampling/text_gate.h"

namespace fullstop::engine {

struct Sequence {
    SequenceId id = 0;
    std::uint64_t rank = 0;       ///< order of arrival; no two are equal
    std::vector<TokenId> tokens;  ///< prompt, then output
    base::Tokens prompt;          ///< how many of them are the prompt
    base::Tokens in_kv;           ///< how many of them the backend holds
    base::Tokens cached{};        ///< of its prompt, taken from another answer and not computed
    base::Tokens most_in_kv{};    ///< ever
    std::optional<base::Tokens> requested;
    base::Tokens limit;  ///< most output tokens
    Sampler sampler;
    std::unique_ptr<TokenConstraint> constraint{};  ///< null: every token may come
    TextGate gate;
    std::optional<TokenLogprobs> logprobs;
    base::Instant arrived;
    Priority priority = Priority::kNormal;
    std::optional<base::Duration> deadline{};  ///< from arrival
    std::optional<OnDeadline> on_deadline{};
    std::string client{};
    base::Tokens known_beginning{};  ///< of its prompt: will be in memory when its turn comes, as
                                     ///< it looked when it came
    std::optional<base::Duration> ttft_estimate{};  ///< from arrival, made when it came
    bool demoted = false;                           ///< it came with a higher class than it has
    std::optional<base::Instant> admitted{}, first_token{}, last_token{};
    std::optional<base::Duration> worst_gap{};  ///< between two tokens
    std::optional<base::Instant> paused_since{};
    base::Duration paused{};  ///< in all, until the next token came
    int swaps = 0, recomputes = 0;
    base::Tokens resumed_at{};  ///< its length when it was resumed last
    /// While it is paused, the snapshot holds its tokens from `snapshot_from` (others had those
    /// before it in KV, too) up to `in_snapshot`.
    base::Tokens snapshot_from{}, in_snapshot{};
    std::vector<std::byte> snapshot{};

    base::Tokens length() const { return {static_cast<std::int64_t>(tokens.size())}; }
    base::Tokens output() const { return length() - prompt; }
    base::Tokens worst_case() const { return prompt + limit; }
    int pauses() const { return swaps + recomputes; }
    std::optional<base::Instant> due() const {
        return deadline ? std::optional(arrived + *deadline) : std::nullopt;
    }
    bool decoding() const { return in_kv.count > 0 && missing().count == 1; }
    base::Tokens missing() const { return length() - in_kv; }  ///< rows until its next logits
};

}  // namespace fullstop::engine
