// What a scripted server plays: which product, how fast, how much room, how much its answers vary,
// what it says of itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "answer/request.h"
#include "base/time.h"
#include "simulator/server/scripted_model.h"

namespace fullstop::simulator {

/// The product whose manners (headers, fields, endpoints) are played. Dialects are chosen by the
/// request's path.
enum class Plays {
    kLlamaServer,
    kVllm,
    kOllama,
    kTabby,
    kLlamaCppPython,
    kLocalAi,
    kLiteLlm,
    kSglang,
    kTgi,
    kUnknown  ///< lists its models and says no more
};

struct Timing {
    base::Duration prefill_per_token = std::chrono::microseconds(400);
    base::Duration itl = std::chrono::milliseconds(12);  ///< alone
    double itl_growth = 0.2;  ///< added share for each further running sequence
    double jitter = 0.08;     ///< sigma of each step's length

    /// Factor on `itl` while `running` sequences share a step.
    double growth(int running) const { return 1 + itl_growth * (running > 1 ? running - 1 : 0); }
};

/// Natural variance: answers that leave their baseline text because the batch had another shape.
struct Variance {
    double at_load = 0;  ///< share of the answers that share a batch
    double alone =
        0;  ///< share of the answers that do not: a server that is not repeatable even for one user
    double spread = 0.4;  ///< sigma of the logarithm of the redrawn remaining length
};

/// What real machines and servers do to times and deliveries while nothing is wrong.
struct Noise {
    base::Duration end_jitter{};  ///< most that an answer's last bytes come later
    bool any_order = false;       ///< the streams of one step are served in another order each time
    int most_tokens_an_event = 1;  ///< an event carries one token to so many
    double cold = 1;               ///< factor on the time of the first kColdAnswers answers
    double drift_per_minute = 0;   ///< added share of every step's length
    double hiccups = 0;            ///< chance of a step that takes ten times as long
    double cached_prefill = 1;     ///< factor on the prefill of a prompt that was seen before

    static constexpr std::uint64_t kColdAnswers = 6;
};

/// What the server tells of itself beside the answers.
struct Introspection {
    bool usage = true;    ///< token counts in the answer
    bool timings = true;  ///< llama-server's per-answer timings
    bool props = true;    ///< /props and /slots
    bool metrics = true;  ///< /metrics
};

struct ServerScript {
    Plays plays = Plays::kLlamaServer;
    std::string model = "scripted-1";
    std::vector<answer::Prompt> prompts;
    std::map<std::string, std::string>
        regex_samples;  ///< by prompt id: words that satisfy its regex check
    std::uint64_t seed = 1;
    LengthRange lengths;
    int slots = 8;
    std::int64_t window = 8192;  ///< tokens one request may hold, as announced
    std::optional<std::int64_t>
        pool;  ///< tokens all share, as announced; absent: each slot owns its window
    Timing timing;
    Variance variance;
    Noise noise;
    Introspection tells;
    bool tool_calls = false;  ///< OpenAI chat: the text is the arguments of one tool call
    int thinking_tokens = 0;  ///< before each answer, as reasoning
    std::vector<std::pair<std::string, std::string>>
        headers;  ///< of every answer; "Server" replaces the product's own
};

}  // namespace fullstop::simulator
