// What the engine says of one answer: what was asked, what came of it, and the true reason of its
// end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "answer/cause.h"
#include "answer/request.h"
#include "base/result.h"
#include "base/time.h"
#include "base/units.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/token_logprobs.h"
#include "engine/scheduling/block_pool.h"
#include "serving/priority.h"

namespace fullstop::engine {

/// An answer of a higher class goes first, and may pause one of a lower one.
using serving::Priority;
/// What becomes of an answer whose deadline passes: an error in place of the answer, or the error
/// with the text so far. Without either it goes on: a deadline alone only makes it more urgent.
enum class OnDeadline { kError, kPartial };

/// One request, as it reaches the engine.
struct Submission {
    SequenceId id = 0;
    base::Instant arrived{};  ///< when the whole request had been received
    std::variant<std::vector<answer::Message>, std::string> prompt{};
    Sampling sampling{};
    std::vector<std::string> stop{};
    std::optional<base::Tokens> max_tokens{};  ///< absent: what the window leaves
    Priority priority = Priority::kNormal;
    std::optional<base::Duration> deadline{};  ///< from arrival; absent: none
    std::optional<OnDeadline> on_deadline{};
    std::optional<std::string>
        grammar{};  ///< what the whole text must be derived from (GBNF); absent: any text will do
    std::optional<int> logprobs{};  ///< tokens are reported with their log-probability and that of
                                    ///< this many alternatives
    std::string client{};  ///< whose it is, for fairness: the name of its API key; "": nobody's in
                           ///< particular
};

/// The numbers of contract section 6. Absent: that moment never came.
struct AnswerNumbers {
    std::optional<base::Tokens> requested_max_tokens, effective_max_tokens;
    std::optional<base::Tokens> prompt_tokens;  ///< absent: they were not counted
    base::Tokens cached_tokens;  ///< of the prompt: taken from another answer, not computed
    base::Tokens output_tokens;  ///< tokens of the answer; the end token is not one of them
    std::optional<base::Duration> queue, ttft;
    int swaps = 0;  ///< pauses after which its KV came back from host memory
    int recomputes =
        0;  ///< pauses after which its tokens were computed again; none is lost either way
    base::Duration paused{};  ///< in all
    base::Bytes kv_bytes_peak;
    std::optional<base::Duration> deadline;
    std::optional<base::Duration>
        ttft_estimate;     ///< made when it came; absent: no target, or costs were not known yet
    bool demoted = false;  ///< one class down, because the target would not have been met
    std::optional<bool> ttft_met,
        itl_met;  ///< against the server's targets; absent: no target, or nothing to compare
};

struct AnswerEnd {
    answer::Cause cause = answer::Cause::kUnexplained;
    std::string detail;  ///< one clause with the numbers
    AnswerNumbers numbers;
};

// Events: engine -> its owner. After Refused or Ended nothing more comes for that id.

/// Not taken on. kAdmissionRejected: too much load, try again after `retry_after`.
/// kRequestRejected: never possible.
struct Refused {
    SequenceId id = 0;
    base::Instant at;
    std::string
        code;  ///< context_length_exceeded, empty_prompt, chat_template, queue_full, ttft_target
    AnswerEnd end;
    std::optional<base::Duration> retry_after;
};
/// Taken out of the queue: its prompt is computed from now on.
struct Admitted {
    SequenceId id = 0;
    base::Instant at;
};
/// One token came. `text` is what may be shown of it and of those before; empty while held back.
struct Produced {
    SequenceId id = 0;
    base::Instant at;
    std::string text;
    std::optional<base::Duration> gap;  ///< since the token before; absent for the first
    std::vector<ShownToken> tokens =
        {};  ///< those that `text` completes, when log-probabilities were asked for
};
/// `text` is the rest that was held back.
struct Ended {
    SequenceId id = 0;
    base::Instant at;
    std::string text;
    AnswerEnd end;
    std::vector<ShownToken> tokens = {};  ///< as in Produced
};
/// What was asked to be shown: the prompt, or why there is none.
struct PromptShown {
    SequenceId id = 0;
    base::Instant at;
    base::Result<std::string> prompt;
};
using EngineEvent = std::variant<Refused, Admitted, Produced, Ended, PromptShown>;
using EngineEvents = std::vector<EngineEvent>;

/// A reading of the engine between two steps.
struct Occupancy {
    std::int64_t running = 0, waiting = 0;
    base::Tokens kv_used;      ///< tokens in KV
    base::Tokens kv_reserved;  ///< owned by and promised to running sequences, in whole blocks
    base::Tokens kv_total;
    base::Tokens kv_owned =
        {};  ///< owned by running sequences, in whole blocks; the rest of kv_reserved is promised
    std::int64_t steps = 0;
    std::int64_t swaps = 0, recomputes = 0;  ///< pauses so far, by what brings the answer back
    base::Bytes host_used,
        host_total;             ///< host memory that holds the KV of paused and ended answers,
    base::Bytes host_prefixes;  ///< and how much of it that of ended ones
    base::Bytes swapped_out, swapped_in;  ///< in all, by pauses
    base::Tokens reused;                  ///< prompt tokens, in all, that were not computed
    std::int64_t demoted = 0,
                 rejected_early = 0;  ///< so far, by the policy for the target of first tokens
    bool operator==(const Occupancy&) const = default;
};

}  // namespace fullstop::engine
