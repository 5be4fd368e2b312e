// One answer while the engine holds it: its tokens, what of them is in KV, and its own sampler and text.
// Owned by Engine: queued, prefilling, decoding; when memory is short, back to the queue with all its tokens (a pause).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/answer_end.h"
#include "engine/text_gate.h"

namespace fullstop::engine {

struct Sequence {
    SequenceId id = 0;
    std::uint64_t rank = 0;       ///< order of arrival: the smaller goes first, and no two are equal
    std::vector<TokenId> tokens;  ///< prompt, then output
    base::Tokens prompt;          ///< how many of them are the prompt
    base::Tokens in_kv;           ///< how many of them the backend holds
    std::optional<base::Tokens> requested;
    base::Tokens limit;  ///< most output tokens
    Sampler sampler;
    TextGate gate;
    base::Instant arrived;
    std::optional<base::Instant> admitted, first_token, last_token;
    std::optional<base::Instant> paused_since;
    base::Duration paused{};  ///< in all, until the next token came
    int pauses = 0;

    base::Tokens length() const { return {static_cast<std::int64_t>(tokens.size())}; }
    base::Tokens output() const { return length() - prompt; }
    base::Tokens worst_case() const { return prompt + limit; }
    bool decoding() const { return in_kv.count > 0 && missing().count == 1; }
    base::Tokens missing() const { return length() - in_kv; }  ///< rows until its next logits
};

}  // namespace fullstop::engine
