// A probe closes for a client's limit, which the record names, for an answer that is too large,
// which is an error of its own, or because it is over. Only a run that was planned has an order of
// steps.
#include "judge/signs/own_end.h"

#include "judge/signs/end_kind.h"

namespace fullstop::judge {

bool closed_by_probe(const answer::Record& record, const answer::Run& run) {
    const bool over = run.interrupted || !run.experiment.order.empty();
    const bool whole = end_kind(record) != EndKind::kNone || record.end.terminator;
    return over && record.end.transport == answer::Transport::kClosedByUs &&
           record.deadline_fired == answer::DeadlineFired::kNone && !whole && !record.end.error;
}

}  // namespace fullstop::judge
