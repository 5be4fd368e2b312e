#include "judge/end_kind.h"

#include <array>
#include <string_view>
#include <utility>

namespace fullstop::judge {
namespace {

using answer::Transport;

// finish_reason, done_reason, stop_type, eos_reason of the servers in the catalogue.
constexpr std::array<std::pair<std::string_view, EndKind>, 26> kWords = {{
    {"stop", EndKind::kStop},
    {"eos", EndKind::kStop},
    {"eos_token", EndKind::kStop},
    {"stop_token", EndKind::kStop},
    {"end_turn", EndKind::kStop},
    {"eosFound", EndKind::kStop},
    {"stop_sequence", EndKind::kStopString},
    {"stop_string", EndKind::kStopString},
    {"word", EndKind::kStopString},
    {"stopStringFound", EndKind::kStopString},
    {"tool_calls", EndKind::kToolCalls},
    {"function_call", EndKind::kToolCalls},
    {"tool_use", EndKind::kToolCalls},
    {"length", EndKind::kLength},
    {"limit", EndKind::kLength},
    {"max_tokens", EndKind::kLength},
    {"max_new_tokens", EndKind::kLength},
    {"contextLengthReached", EndKind::kLength},
    {"maxPredictedTokensReached", EndKind::kLength},
    {"abort", EndKind::kAbort},
    {"cancelled", EndKind::kAbort},
    {"error", EndKind::kError},
    {"repetition", EndKind::kRepetition},
    {"content_filter", EndKind::kFilter},
    {"load", EndKind::kLoad},
    {"unload", EndKind::kLoad},
}};

}  // namespace

EndKind end_kind(const answer::Record& record) {
    if (!record.end.reason || record.end.reason->empty() || *record.end.reason == "null") return EndKind::kNone;
    for (const auto& [word, kind] : kWords)
        if (word == *record.end.reason) return kind;
    return EndKind::kOther;
}

std::string reason_word(const answer::Record& record) { return record.end.reason.value_or("none"); }

bool transport_broken(const answer::Record& record) { return record.end.transport == Transport::kTruncated || record.end.transport == Transport::kReset; }

bool looks_natural(const answer::Record& record) {
    const EndKind kind = end_kind(record);
    const bool named = kind == EndKind::kStop || kind == EndKind::kStopString || kind == EndKind::kToolCalls;
    return named && !record.end.error && !transport_broken(record);
}

bool is_victim(const answer::Record& record) {
    if (record.end.transport == Transport::kClosedByUs || record.end.transport == Transport::kTimedOut) return false;
    if (record.end.error || transport_broken(record) || record.end.transport == Transport::kRefused) return true;
    switch (end_kind(record)) {
        case EndKind::kAbort:
        case EndKind::kError:
        case EndKind::kRepetition: return true;
        case EndKind::kNone: return !record.end.terminator;
        default: return false;
    }
}

bool has_content(const answer::Record& record) { return !record.text.empty() || !record.reasoning.empty() || !record.tool_calls.empty(); }

bool request_known(const answer::Record& record) { return !record.request.messages.empty() || !record.request.prompt_id.empty(); }

bool is_timed(const answer::Record& record) { return record.timeline.sent && record.timeline.ended && *record.timeline.ended > *record.timeline.sent; }

}  // namespace fullstop::judge
