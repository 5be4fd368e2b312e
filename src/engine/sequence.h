// One answer while the engine holds it: its tokens, what of them is in KV, and its own sampler and text.
// Owned by Engine; states only move forward: queued, prefilling, decoding.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/answer_end.h"
#include "engine/text_gate.h"

namespace fullstop::engine {

struct Sequence {
    SequenceId id = 0;
    std::vector<TokenId> tokens;  ///< prompt, then output
    base::Tokens prompt;          ///< how many of them are the prompt
    base::Tokens in_kv;           ///< how many of them the backend holds
    std::optional<base::Tokens> requested;
    base::Tokens limit;  ///< most output tokens
    Sampler sampler;
    TextGate gate;
    base::Instant arrived;
    std::optional<base::Instant> admitted, first_token, last_token;

    base::Tokens length() const { return {static_cast<std::int64_t>(tokens.size())}; }
    base::Tokens output() const { return length() - prompt; }
    base::Tokens worst_case() const { return prompt + limit; }
    bool decoding() const { return in_kv >= prompt; }
    base::Tokens missing() const { return length() - in_kv; }  ///< rows until its next logits
};

}  // namespace fullstop::engine
