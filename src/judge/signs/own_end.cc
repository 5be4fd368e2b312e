// A probe closes for a client's limit, which the record names, for an answer that is too large,
// which is an error of its own, or because it is over. Only a run that was planned has an order of
// steps.
#include "judge/signs/own_end.h"

#include <algorithm>

#include "judge/signs/end_kind.h"

namespace fullstop::judge {
namespace {

using answer::Record;

/// Shorter silences are queues and prefills of slow machines.
constexpr base::Duration kLeastStall = std::chrono::seconds(20);
/// Over the longest pause that ended in more text.
constexpr int kBeyondPauses = 5;

bool ended_by_us(const Record& record) {
    return record.end.transport == answer::Transport::kClosedByUs ||
           record.end.transport == answer::Transport::kTimedOut;
}

base::Duration longest_pause(const Record& record) {
    base::Duration longest = record.ttft().value_or(base::Duration{});
    for (const base::Duration gap : record.timeline.gaps) longest = std::max(longest, gap);
    return longest;
}

}  // namespace

bool fell_silent(const Record& record, const answer::Run& run) {
    const bool ended =
        end_kind(record) != EndKind::kNone || record.end.terminator || record.end.error.has_value();
    if (!ended_by_us(record) || ended || !is_timed(record) ||
        record.deadline_fired != answer::DeadlineFired::kNone)
        return false;
    const base::Duration silence = *record.last_silence();
    if (silence < kLeastStall) return false;
    base::Duration pause{};
    for (const Record& other : run.records)
        if (other.request.arm == record.request.arm) pause = std::max(pause, longest_pause(other));
    return silence > pause * kBeyondPauses;
}

bool closed_by_probe(const answer::Record& record, const answer::Run& run) {
    const bool over = run.interrupted || !run.experiment.order.empty();
    const bool whole = end_kind(record) != EndKind::kNone || record.end.terminator;
    return over && record.end.transport == answer::Transport::kClosedByUs &&
           record.deadline_fired == answer::DeadlineFired::kNone && !whole && !record.end.error &&
           !fell_silent(record, run);
}

}  // namespace fullstop::judge
