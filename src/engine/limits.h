// Every queue, buffer and step of the engine, in one table with its reason and what happens at the
// limit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "base/units.h"

namespace fullstop::engine {

// name                                   value                         at the limit
/// KV is accounted in blocks: small enough that a sequence wastes at most 15 tokens, large enough
/// that counting is free.
inline constexpr base::Tokens kBlockTokens{16};
/// Prompt rows computed beside running answers in one step, without a latency target. On two CPU
/// cores a row of the built-in model costs 4 to 6 ms, so next tokens come up to 0.4 s late
/// meanwhile.
///   the rest of the prompt waits for the next step
inline constexpr base::Tokens kPrefillRowsBesideDecodes{64};
/// Prompt rows in one step when nobody is waiting for a next token; also bounds how late a
/// cancellation is seen.
///   same
inline constexpr base::Tokens kPrefillRowsAlone{256};
/// Prompt rows that every step computes for the first unfinished prompt, whatever a latency target
/// says.
///   later tokens come late
inline constexpr base::Tokens kLeastPrefillRows{4};
/// Answers that a forecast looks back on: enough for a quantile, few enough to follow another kind
/// of load.
///   older ones are forgotten
inline constexpr std::size_t kForecastAnswers = 64;
/// After this long a waiting or running answer rises by one class; after two or three times it
/// stands above all classes and nothing that comes later goes before it.
///   it is never paused for another class
inline constexpr base::Duration kAgeing = std::chrono::seconds(30);
/// Tokens that a resumed answer makes before it is chosen to be paused again, while another will
/// do.
///   it may be chosen
inline constexpr base::Tokens kQuantumTokens{32};
/// Leaps of one forecast of a first token: three for each of some hundred answers ahead.
///   the time so far is the estimate
inline constexpr std::size_t kMostForecastLeaps = 2000;
/// Host memory for the KV of paused answers: some ten thousand tokens of a small model, a hundredth
/// of a usual machine.
/// At the limit their tokens are computed again instead.
///   recompute
inline constexpr base::Bytes kDefaultHostMemory{std::int64_t{1} << 30};
/// Tokens at the beginning of a prompt that are worth taking from host memory; fewer are computed
/// as fast.
///   computed
inline constexpr base::Tokens kLeastPrefix{16};
/// Tokens of a beginning that another answer is computing and that are worth waiting for: a step's
/// rows.
///   computed twice
inline constexpr base::Tokens kLeastAwaited{64};
/// A beginning is not taken out of a copy so many times as long: copying a token costs about a
/// tenth of computing it.
///   computed
inline constexpr std::int64_t kMostCopiedPerReused = 8;
/// Ended answers whose KV is kept: a search compares the prompt with each.
///   the oldest is dropped
inline constexpr std::size_t kMostPrefixes = 256;
/// A stream is not silent for longer than this while its answer is paused or its prompt computed:
/// common gateways cut at 60 s, some clients at 30.
///   a comment that holds no content is sent
inline constexpr base::Duration kHeartbeat = std::chrono::seconds(10);
/// Requests that wait for admission, unless --max-queue says otherwise: eight times the built-in
/// slots; more would wait for minutes.
///   503 with an estimate
inline constexpr std::size_t kDefaultMaxQueue = 64;
/// Sequences at once: libllama has 256 sequence ids, some are needed for padding.
///   usage error
inline constexpr int kMaxSequences = 200;
/// A count of tokens in a request: above every window there is, and far from where sums overflow.
/// 2^63 - 1 is a common "no limit".
///   taken for this
///   one
inline constexpr base::Tokens kMostTokens{1'000'000'000};
/// Stop strings of one request. OpenAI allows 4; text is searched for each of them at every token.
///   400
inline constexpr std::size_t kMaxStopStrings = 16;
/// Length of one stop string: text that might begin one is held back.
///   400
inline constexpr std::size_t kMaxStopBytes = 256;
/// Alternatives to each token: OpenAI allows 20. Each costs some 100 bytes of answer a token.
///   400
inline constexpr int kMaxTopLogprobs = 20;
/// Tokens with a bias of their own, which are looked at for every token.
///   400
inline constexpr std::size_t kMaxLogitBias = 1024;
/// Deadline of one request: a day; a longer one is a mistake of unit.
///   400
inline constexpr base::Duration kMaxDeadline = std::chrono::hours(24);
/// JSON values of a request body: 20 000 messages. What is done with each takes the loop about 0.3
/// us.
///   400
inline constexpr std::size_t kMaxBodyValues = 65'536;
/// JSON nesting of a request body; real ones are below 10.
///   400
inline constexpr std::size_t kMaxJsonDepth = 32;

}  // namespace fullstop::engine
