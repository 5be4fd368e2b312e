// client_deadline, client_idle_timeout, client_cancelled: we, or the client whose capture this is,
// closed. Needs: transport closed_by_us or timed_out. Refuted by: a close of the peer. The timer is
// named by what was set, else by which constant the elapsed time or the last silence hits.
// Recommends: an idle limit instead of a total one, above the measured times.
#include <fmt/format.h>

#include <cmath>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/timers.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;
using answer::Transport;

bool ended_by_client(const Record& record) {
    const bool ours = record.end.transport == Transport::kClosedByUs ||
                      record.end.transport == Transport::kTimedOut;
    // What comes after a finish reason is politeness: closing then cuts nothing.
    const bool whole = end_kind(record) != EndKind::kNone || record.end.terminator;
    return ours && !whole && !record.end.error;
}

std::optional<double> elapsed_ms(const Record& record) {
    if (!is_timed(record)) return std::nullopt;
    return base::to_ms(*record.elapsed());
}

std::optional<double> silence_ms(const Record& record) {
    if (!is_timed(record)) return std::nullopt;
    return base::to_ms(*record.last_silence());
}

bool deadline_reached(const Record& record) {
    const auto elapsed = elapsed_ms(record);
    return record.client_deadline_ms && elapsed && *elapsed >= *record.client_deadline_ms * 0.98;
}

}  // namespace

MaybeClaim client_deadline(const Record& record, const Context&) {
    if (!ended_by_client(record)) return std::nullopt;
    const auto elapsed = elapsed_ms(record);
    if (deadline_reached(record)) {
        Claim claim{Cause::kClientDeadline, Confidence::kProven};
        claim.evidence.push_back(
            {fmt::format("the client's deadline of {:.1f} s was reached while tokens still came",
                         *record.client_deadline_ms / 1000),
             {record.request.id},
             *record.client_deadline_ms,
             "client deadline"});
        claim.remedies.push_back(
            {"use a limit on silence instead of one on the whole answer, or raise it above the "
             "longest answer under load",
             "client deadline",
             {}});
        return claim;
    }
    if (record.deadline_fired == answer::DeadlineFired::kClient || !elapsed ||
        record.end.transport == Transport::kTimedOut)
        return std::nullopt;
    const auto timer = hit(total_timers(), *elapsed);
    if (!timer || (silence_ms(record) && *silence_ms(record) > *elapsed / 2)) return std::nullopt;
    Claim claim{Cause::kClientDeadline, Confidence::kStrong};
    claim.evidence.push_back({fmt::format("the client closed after {:.1f} s with tokens still "
                                          "coming; {} ends answers at {:.0f} s",
                                          *elapsed / 1000, timer->who, timer->seconds),
                              {record.request.id},
                              elapsed,
                              "elapsed"});
    claim.next =
        "raise the client's total limit, or set a limit on silence instead, and measure again";
    return claim;
}

MaybeClaim client_idle_timeout(const Record& record, const Context&) {
    if (!ended_by_client(record) || deadline_reached(record)) return std::nullopt;
    const auto silence = silence_ms(record);
    const auto timer = silence ? hit(idle_timers(), *silence) : std::nullopt;
    const bool fired = record.deadline_fired == answer::DeadlineFired::kClient;
    if (!fired && !timer) return std::nullopt;
    Claim claim{Cause::kClientIdleTimeout, fired ? Confidence::kProven : Confidence::kStrong};
    claim.evidence.push_back(
        {fmt::format("the client gave up after {:.1f} s of silence", silence.value_or(0) / 1000),
         {record.request.id},
         silence,
         "last silence"});
    claim.next =
        "find what the server did in that silence (queue, prefill, preemption), or raise the limit "
        "above it";
    return claim;
}

MaybeClaim client_cancelled(const Record& record, const Context&) {
    // A silence that ran into our own last resort (15 minutes) is the server's, not a client's.
    if (!ended_by_client(record) || record.end.transport == Transport::kTimedOut)
        return std::nullopt;
    Claim claim{Cause::kClientCancelled, Confidence::kProven};
    claim.evidence.push_back({"this side closed the connection, and no known limit explains when",
                              {record.request.id},
                              elapsed_ms(record),
                              "transport closed_by_us"});
    return claim;
}

}  // namespace fullstop::judge
