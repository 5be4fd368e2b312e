// aborted_by_server, displaced_by_arrival, cancelled_by_other, model_unloaded: the server ended a
// running answer for a reason outside it. Needs: the word `abort` or an error that says so; for
// displaced_by_arrival a silent end in the instant in which another request arrived; for
// cancelled_by_other a stall or end in the instant in which another client left. Refuted by: no
// such arrival or departure. Recommends: the flag that stops it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/error_class.h"
#include "judge/signs/words.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

MaybeClaim worded(const Record& record, Cause cause) {
    const auto* error = decisive_error(record);
    const auto kind = error != nullptr ? classify(*error) : std::nullopt;
    if (!kind || kind->cause != cause) return std::nullopt;
    Claim claim{cause, Confidence::kProven};
    claim.evidence.push_back(
        {fmt::format("\"{}\": {}", one_line(error->text, 160), kind->reading),
         {record.request.id},
         {},
         error->where == answer::ErrorPlace::kHttp ? "HTTP body" : "error event"});
    return claim;
}

/// The other client whose leaving coincides with the moment at which this answer fell silent.
const Record* departure_at_last_token(const Record& record, const Context& context) {
    if (!record.timeline.last_token) return nullptr;
    for (const Record* other : context.siblings) {
        if (other == &record || other->end.transport != answer::Transport::kClosedByUs ||
            !other->timeline.ended)
            continue;
        const base::Duration away = *record.timeline.last_token - *other->timeline.ended;
        if (away > -kSimultaneous && away < kSimultaneous) return other;
    }
    return nullptr;
}

/// Of all that fell silent until a client gave up, most did so when another left. With many users
/// some fall on such a moment by chance.
bool mostly_locked(const Context& context) {
    std::ptrdiff_t silent = 0, locked = 0;
    std::set<const Record*> who_left;
    for (const Record* one : context.siblings)
        who_left.insert(departure_at_last_token(*one, context));
    for (const Record* one : context.siblings) {
        if (who_left.contains(one)) continue;
        const bool ours = one->end.transport == answer::Transport::kTimedOut ||
                          one->end.transport == answer::Transport::kClosedByUs;
        if (!ours || !one->timeline.ended || !one->last_silence() ||
            *one->last_silence() <= std::chrono::seconds(2))
            continue;
        ++silent;
        locked += departure_at_last_token(*one, context) != nullptr;
    }
    return locked * 2 > silent;
}

}  // namespace

MaybeClaim aborted_by_server(const Record& record, const Context&) {
    if (auto claim = worded(record, Cause::kAbortedByServer)) return claim;
    if (end_kind(record) != EndKind::kAbort) return std::nullopt;
    Claim claim{Cause::kAbortedByServer, Confidence::kProven};
    claim.evidence.push_back(
        {fmt::format(
             "finish reason \"{}\": outside the protocol's own words; the engine ended it{}",
             reason_word(record), record.end.terminator ? ", and [DONE] follows all the same" : ""),
         {record.request.id},
         {},
         "finish_reason"});
    claim.next =
        "find in the server's log why it aborts: shutdown, scale-down, priority, or memory; drain "
        "before stopping a server";
    return claim;
}

MaybeClaim displaced_by_arrival(const Record& record, const Context& context) {
    if (context.population == nullptr || record.end.error || end_kind(record) != EndKind::kNone)
        return std::nullopt;
    const auto found = context.population->arrivals.find(&record);
    if (found == context.population->arrivals.end()) return std::nullopt;
    // A server that never names a reason ends so when alone, too: then a terminator without a
    // reason says nothing.
    const auto wordless = [](const Record* alone) {
        return end_kind(*alone) == EndKind::kNone && alone->end.terminator;
    };
    if (record.end.terminator && std::ranges::any_of(context.alone, wordless)) return std::nullopt;
    const bool repeated = context.population->arrivals.size() >= 2;
    Claim claim{Cause::kDisplacedByArrival, repeated ? Confidence::kStrong : Confidence::kWeak};
    claim.evidence.push_back(
        {fmt::format(
             "it ended when request {} arrived; the same happened to {} answers of this level",
             found->second->request.id, context.population->arrivals.size()),
         {record.request.id, found->second->request.id},
         static_cast<double>(context.population->arrivals.size()),
         "arrival lock"});
    claim.remedies.push_back(
        {"llama-cpp-python: start with --interrupt_requests false, or use a server that queues",
         "--interrupt_requests false",
         {}});
    return claim;
}

MaybeClaim cancelled_by_other(const Record& record, const Context& context) {
    const bool stalled = record.end.transport == answer::Transport::kTimedOut ||
                         record.end.transport == answer::Transport::kClosedByUs;
    if (end_kind(record) != EndKind::kNone || record.end.error || record.end.terminator)
        return std::nullopt;
    const Record* other = nullptr;
    if (stalled && record.timeline.ended && record.last_silence() &&
        *record.last_silence() > std::chrono::seconds(2))
        other = mostly_locked(context) ? departure_at_last_token(record, context) : nullptr;
    if (other == nullptr && context.population != nullptr)
        if (const auto found = context.population->departures.find(&record);
            found != context.population->departures.end())
            other = found->second;
    if (other == nullptr) return std::nullopt;
    Claim claim{Cause::kCancelledByOther, Confidence::kStrong};
    claim.evidence.push_back(
        {fmt::format("its last token came when the client of {} left, and nothing came after",
                     other->request.id),
         {record.request.id, other->request.id},
         {},
         "departure lock"});
    claim.remedies.push_back(
        {"update the server (ik_llama.cpp before June 2026 stops everybody's decode when one "
         "client leaves), or keep clients from cancelling queued requests",
         "",
         {}});
    return claim;
}

MaybeClaim model_unloaded(const Record& record, const Context& context) {
    if (auto claim = worded(record, Cause::kModelUnloaded)) {
        claim->remedies.push_back(
            {"keep the model loaded while answers run (keep-alive, no second model in the same "
             "memory, no differing options)",
             "keep_alive",
             {}});
        return claim;
    }
    const auto *before = context.server, *after = context.server_after;
    const bool other_model = before != nullptr && after != nullptr && !before->model.empty() &&
                             !after->model.empty() && before->model != after->model;
    if (!other_model || !is_victim(record)) return std::nullopt;
    Claim claim{Cause::kModelUnloaded, Confidence::kStrong};
    claim.evidence.push_back(
        {fmt::format("the server held {} before and {} after", before->model, after->model),
         {record.request.id},
         {},
         "model list"});
    claim.remedies.push_back({"keep the model loaded while answers run", "keep_alive", {}});
    return claim;
}

}  // namespace fullstop::judge
