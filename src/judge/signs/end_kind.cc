#include "judge/signs/end_kind.h"

#include <algorithm>

namespace fullstop::judge {

using answer::Transport;

EndKind end_kind(const answer::Record& record) {
    return answer::finish_kind(record.end.reason.value_or(""));
}

std::string reason_word(const answer::Record& record) { return record.end.reason.value_or("none"); }

bool transport_broken(const answer::Record& record) {
    return record.end.transport == Transport::kTruncated ||
           record.end.transport == Transport::kReset;
}

bool looks_natural(const answer::Record& record) {
    const EndKind kind = end_kind(record);
    const bool named =
        kind == EndKind::kStop || kind == EndKind::kStopString || kind == EndKind::kToolCalls;
    // Behind the answer's own terminator nothing can be lost.
    return named && !record.end.error && (!transport_broken(record) || record.end.terminator);
}

bool is_victim(const answer::Record& record) {
    if (record.end.transport == Transport::kClosedByUs ||
        record.end.transport == Transport::kTimedOut)
        return false;
    if (looks_natural(record)) return false;
    if (record.end.error || transport_broken(record) || record.end.transport == Transport::kRefused)
        return true;
    switch (end_kind(record)) {
        case EndKind::kAbort:
        case EndKind::kError:
        case EndKind::kRepetition: return true;
        case EndKind::kNone: return !record.end.terminator;
        default: return false;
    }
}

bool has_content(const answer::Record& record) {
    return !record.text.empty() || !record.reasoning.empty() || !record.tool_calls.empty();
}

bool came_empty(const answer::Record& record, const std::vector<const answer::Record*>& baselines) {
    const auto says_nothing = [](const answer::Record& r) {
        return r.tool_calls.empty() && r.text.find_first_not_of(" \t\r\n") == std::string::npos;
    };
    if (!says_nothing(record) || baselines.empty()) return false;
    const auto empty = std::ranges::count_if(
        baselines, [&](const answer::Record* alone) { return says_nothing(*alone); });
    return empty * 2 < std::ssize(baselines);
}

bool request_known(const answer::Record& record) {
    return !record.request.messages.empty() || !record.request.prompt_id.empty();
}

bool is_timed(const answer::Record& record) {
    return record.timeline.sent && record.timeline.ended &&
           *record.timeline.ended > *record.timeline.sent;
}

}  // namespace fullstop::judge
