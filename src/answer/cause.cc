// One table: cause, public word, layer, effect, meaning.
#include "answer/cause.h"

#include <array>

#include "base/assert.h"

namespace fullstop::answer {
namespace {

using enum Cause;
using enum Effect;

constexpr std::array kCauses = {
    CauseEntry{kNaturalEnd, "natural_end", Layer::kModel, kComplete,
               "the model ended it (end-of-sequence token or complete tool call)"},
    CauseEntry{kStopString, "stop_string", Layer::kSettings, kComplete,
               "a stop string of the request was reached"},
    CauseEntry{kTokenLimit, "token_limit", Layer::kSettings, kAskedFor,
               "the limit that the request asked for was reached"},
    CauseEntry{kReasoningBudget, "reasoning_budget", Layer::kModel, kShortened,
               "thinking used up the token limit"},
    CauseEntry{kNumericDivergence, "numeric_divergence", Layer::kModel, kUndecided,
               "same seed, other arithmetic at another batch size; ends move both ways"},
    CauseEntry{kRepetitionGuard, "repetition_guard", Layer::kRuntime, kShortened,
               "the server's guard against repetition ended it"},
    CauseEntry{kDefaultTokenLimit, "default_token_limit", Layer::kSettings, kShortened,
               "a hidden, default or clamped token limit of the server"},
    CauseEntry{kContextLimit, "context_limit", Layer::kSettings, kShortened,
               "the context window of the slot or request was full"},
    CauseEntry{kPromptTruncated, "prompt_truncated", Layer::kSettings, kUndecided,
               "the server dropped a part of the prompt"},
    CauseEntry{kGenerationTimeLimit, "generation_time_limit", Layer::kRuntime, kShortened,
               "a time limit of the server on generation"},
    CauseEntry{kKvPoolExhausted, "kv_pool_exhausted", Layer::kMemory, kShortened,
               "the shared KV cache had no room left"},
    CauseEntry{kOutOfMemory, "out_of_memory", Layer::kMemory, kShortened,
               "an allocation of memory or VRAM failed"},
    CauseEntry{kEngineDeath, "engine_death", Layer::kRuntime, kShortened,
               "the process or thread that generates died"},
    CauseEntry{kPreempted, "preempted", Layer::kMemory, kComplete,
               "paused for memory and resumed: a pause, not a cut"},
    CauseEntry{kAdmissionRejected, "admission_rejected", Layer::kRuntime, kRefused,
               "the server's queue was full"},
    CauseEntry{kAbortedByServer, "aborted_by_server", Layer::kRuntime, kShortened,
               "the server aborted it"},
    CauseEntry{kDisplacedByArrival, "displaced_by_arrival", Layer::kRuntime, kShortened,
               "the arrival of another request ended it"},
    CauseEntry{kCancelledByOther, "cancelled_by_other", Layer::kRuntime, kShortened,
               "the departure of another client ended it"},
    CauseEntry{kModelUnloaded, "model_unloaded", Layer::kRuntime, kShortened,
               "the model was unloaded or reloaded"},
    CauseEntry{kServerStall, "server_stall", Layer::kRuntime, kShortened,
               "the stream fell silent for good with the connection open"},
    CauseEntry{kAnswersMixed, "answers_mixed", Layer::kRuntime, kShortened,
               "it carries another answer's text, or text broken that was whole alone"},
    CauseEntry{kOutputLost, "output_lost", Layer::kRuntime, kShortened,
               "tokens were generated and counted but not delivered"},
    CauseEntry{kGatewayIdleTimeout, "gateway_idle_timeout", Layer::kGateway, kShortened,
               "a gateway's limit on silence"},
    CauseEntry{kGatewayDeadline, "gateway_deadline", Layer::kGateway, kShortened,
               "a gateway's limit on total time"},
    CauseEntry{kGatewayTokenBudget, "gateway_token_budget", Layer::kGateway, kShortened,
               "a token budget that moves with load, priority or queue"},
    CauseEntry{kGatewayRejected, "gateway_rejected", Layer::kGateway, kRefused,
               "a gateway refused it"},
    CauseEntry{kGatewayRewrite, "gateway_rewrite", Layer::kGateway, kShortened,
               "a gateway made a cut look like a natural end, or changed the text"},
    CauseEntry{kClientIdleTimeout, "client_idle_timeout", Layer::kClient, kShortened,
               "the client's limit on silence"},
    CauseEntry{kClientDeadline, "client_deadline", Layer::kClient, kShortened,
               "the client's limit on total time"},
    CauseEntry{kClientCancelled, "client_cancelled", Layer::kClient, kShortened, "the client left"},
    CauseEntry{kClientMisread, "client_misread", Layer::kClient, kShortened,
               "the bytes hold more, or say otherwise, than a common client shows"},
    CauseEntry{kConnectionBroken, "connection_broken", Layer::kTransport, kShortened,
               "the connection ended inside the answer"},
    CauseEntry{kServerError, "server_error", Layer::kRuntime, kShortened,
               "the server reported an error"},
    CauseEntry{kRequestRejected, "request_rejected", Layer::kSettings, kRefused,
               "the request was refused for a reason that has nothing to do with load"},
    CauseEntry{kMeasurementArtefact, "measurement_artefact", Layer::kProbe, kUndecided,
               "made by the measurement, not by the server"},
    CauseEntry{kUnexplained, "unexplained", Layer::kUnknown, kUndecided,
               "not explained by what was recorded"},
};

constexpr std::array<std::string_view, 9> kLayers = {
    "model", "settings", "runtime", "memory", "gateway", "client", "transport", "probe", "unknown"};
constexpr std::array<std::string_view, 4> kConfidences = {"unresolved", "weak", "strong", "proven"};

template <class Enum, std::size_t N>
std::optional<Enum> parse_word(const std::array<std::string_view, N>& words,
                               std::string_view word) {
    for (std::size_t i = 0; i < N; ++i)
        if (words[i] == word) return static_cast<Enum>(i);
    return std::nullopt;
}

}  // namespace

std::span<const CauseEntry> all_causes() { return kCauses; }

const CauseEntry& entry(Cause cause) {
    const auto& found = kCauses[static_cast<std::size_t>(cause)];
    FULLSTOP_ASSERT(found.cause == cause, "the table of causes is in the order of the enumeration");
    return found;
}

std::string_view to_string(Cause cause) { return entry(cause).name; }
std::string_view to_string(Layer layer) { return kLayers[static_cast<std::size_t>(layer)]; }
std::string_view to_string(Confidence confidence) {
    return kConfidences[static_cast<std::size_t>(confidence)];
}

std::optional<Cause> parse_cause(std::string_view word) {
    for (const CauseEntry& candidate : kCauses)
        if (candidate.name == word) return candidate.cause;
    return std::nullopt;
}
std::optional<Layer> parse_layer(std::string_view word) { return parse_word<Layer>(kLayers, word); }
std::optional<Confidence> parse_confidence(std::string_view word) {
    return parse_word<Confidence>(kConfidences, word);
}

}  // namespace fullstop::answer
