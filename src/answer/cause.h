// The vocabulary of ends: why one answer stopped, which layer stopped it, and how sure that is.
//
// The words are public (contract section 2) and written once, in cause.cc. Everything that speaks
// of a cause — judge, report, engine, gateway — takes name, layer and meaning from that table.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace fullstop::answer {

enum class Cause {
    kNaturalEnd,
    kStopString,
    kTokenLimit,
    kReasoningBudget,
    kNumericDivergence,
    kRepetitionGuard,
    kDefaultTokenLimit,
    kContextLimit,
    kPromptTruncated,
    kGenerationTimeLimit,
    kKvPoolExhausted,
    kOutOfMemory,
    kEngineDeath,
    kPreempted,
    kAdmissionRejected,
    kAbortedByServer,
    kDisplacedByArrival,
    kCancelledByOther,
    kModelUnloaded,
    kServerStall,
    kAnswersMixed,
    kOutputLost,
    kGatewayIdleTimeout,
    kGatewayDeadline,
    kGatewayTokenBudget,
    kGatewayRejected,
    kGatewayRewrite,
    kClientIdleTimeout,
    kClientDeadline,
    kClientCancelled,
    kClientMisread,
    kConnectionBroken,
    kServerError,
    kRequestRejected,
    kMeasurementArtefact,
    kUnexplained,
};

enum class Layer {
    kModel,
    kSettings,
    kRuntime,
    kMemory,
    kGateway,
    kClient,
    kTransport,
    kProbe,
    kUnknown
};

/// Grading: proven = the bytes or explicit server evidence say it; strong = two independent signs;
/// weak = an arithmetic coincidence; unresolved = the next experiment must decide.
enum class Confidence { kUnresolved, kWeak, kStrong, kProven };

/// What a cause means for the length of the answer.
enum class Effect {
    kComplete,   ///< the answer ended by itself or where it was asked to end
    kAskedFor,   ///< ended at the limit that was asked for
    kShortened,  ///< ended before that, by somebody else
    kRefused,    ///< never began
    kUndecided,  ///< cannot be said of this answer alone
};

struct CauseEntry {
    Cause cause;
    std::string_view name;  ///< the word of the contract
    Layer layer;
    Effect effect;
    std::string_view meaning;  ///< one clause for people
};

/// Every cause, in the order of the contract.
std::span<const CauseEntry> all_causes();
const CauseEntry& entry(Cause);

std::string_view to_string(Cause);
std::string_view to_string(Layer);
std::string_view to_string(Confidence);
std::optional<Cause> parse_cause(std::string_view);
std::optional<Layer> parse_layer(std::string_view);
std::optional<Confidence> parse_confidence(std::string_view);

}  // namespace fullstop::answer
