#include "answer/finish_word.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fullstop::answer {
namespace {

constexpr auto kWords = std::to_array<std::pair<std::string_view, FinishKind>>({
    {"stop", FinishKind::kStop},
    {"eos", FinishKind::kStop},
    {"eos_token", FinishKind::kStop},
    {"stop_token", FinishKind::kStop},
    {"stopped_eos", FinishKind::kStop},
    {"end_turn", FinishKind::kStop},
    {"pause_turn", FinishKind::kStop},
    {"refusal", FinishKind::kStop},
    {"completed", FinishKind::kStop},
    {"eosFound", FinishKind::kStop},
    {"stop_sequence", FinishKind::kStopString},
    {"stop_string", FinishKind::kStopString},
    {"word", FinishKind::kStopString},
    {"stopped_word", FinishKind::kStopString},
    {"stopStringFound", FinishKind::kStopString},
    {"tool_calls", FinishKind::kToolCalls},
    {"function_call", FinishKind::kToolCalls},
    {"tool_use", FinishKind::kToolCalls},
    {"length", FinishKind::kLength},
    {"limit", FinishKind::kLength},
    {"stopped_limit", FinishKind::kLength},
    {"max_tokens", FinishKind::kLength},
    {"max_new_tokens", FinishKind::kLength},
    {"max_output_tokens", FinishKind::kLength},
    {"model_context_window_exceeded", FinishKind::kLength},
    {"contextLengthReached", FinishKind::kLength},
    {"maxPredictedTokensReached", FinishKind::kLength},
    {"abort", FinishKind::kAbort},
    {"cancelled", FinishKind::kAbort},
    {"error", FinishKind::kError},
    {"repetition", FinishKind::kRepetition},
    {"content_filter", FinishKind::kFilter},
    {"load", FinishKind::kLoad},
    {"unload", FinishKind::kLoad},
});

constexpr auto kEndTokenWords =
    std::to_array<std::string_view>({"eos", "stop_token", "eos_token", "stopped_eos", "eosFound"});

}  // namespace

FinishKind finish_kind(std::string_view word) {
    if (word.empty() || word == "null") return FinishKind::kNone;
    const auto* const found =
        std::ranges::find(kWords, word, &std::pair<std::string_view, FinishKind>::first);
    return found == kWords.end() ? FinishKind::kOther : found->second;
}

bool names_end_token(std::string_view word) {
    return std::ranges::find(kEndTokenWords, word) != kEndTokenWords.end();
}

}  // namespace fullstop::answer
