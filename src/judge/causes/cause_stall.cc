// server_stall: the server stopped speaking and never ended the answer. Needs: a silence with the
// connection open, far beyond every pause that answers of the same arm came back from, or slots
// that fell silent in one moment and were closed together later. Refuted by: an end of any kind.
// Recommends: the server's log, and the same request alone.
#include <fmt/format.h>

#include <algorithm>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/hop.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

/// Slots that stall in one step show their last token within so much of each other.
constexpr base::Duration kOneMoment = std::chrono::milliseconds(250);
/// A silence that is no pause of an ordinary answer.
constexpr base::Duration kLeastSilence = std::chrono::seconds(2);

/// When its text stopped coming, of an answer that stopped without a word after a silence.
std::optional<base::Duration> fell_silent_at(const Record& record) {
    const bool worded =
        record.end.error || end_kind(record) != EndKind::kNone || record.end.terminator;
    const bool ours = record.end.transport == answer::Transport::kClosedByUs ||
                      record.end.transport == answer::Transport::kTimedOut;
    if (worded || ours || !is_timed(record) || *record.last_silence() < kLeastSilence)
        return std::nullopt;
    return *record.timeline.ended - *record.last_silence();
}

Claim stall(const Record& record, Confidence confidence, std::string text) {
    Claim claim{Cause::kServerStall, confidence};
    claim.evidence.push_back({std::move(text),
                              {record.request.id},
                              base::to_ms(*record.last_silence()),
                              "last silence"});
    claim.next =
        "read the server's log at this moment; ask it for one answer alone while the others hang";
    return claim;
}

}  // namespace

MaybeClaim server_stall(const Record& record, const Context& context) {
    if (context.fell_silent)
        return stall(record, Confidence::kStrong,
                     fmt::format("silent for {:.0f} s with the connection open and no end, far "
                                 "beyond every pause of the other answers",
                                 base::to_seconds(*record.last_silence())));
    const auto at = fell_silent_at(record);
    if (!at || gateway_of(record)) return std::nullopt;
    const auto together = std::ranges::count_if(context.siblings, [&](const Record* other) {
        const auto theirs = fell_silent_at(*other);
        return other != &record && theirs &&
               (*theirs > *at ? *theirs - *at : *at - *theirs) <= kOneMoment;
    });
    if (together < 2) return std::nullopt;
    return stall(
        record, Confidence::kWeak,
        fmt::format("{} answers fell silent within {} ms of each other and none came back; "
                    "no header shows a gateway that could have closed them",
                    together + 1, kOneMoment / std::chrono::milliseconds(1)));
}

}  // namespace fullstop::judge
