// measurement_artefact. Needs: an answer that our own limits or an interruption ended, or bytes
// that our reader could not read. Refuted by: an end of the server's own. Recommends: repeating the
// measurement. client_misread (a candidate, never the verdict on whole bytes). Needs: shapes of the
// bytes that are legal and that common clients are known to misread. Recommends: looking at the
// client, not at the server.
#include <fmt/format.h>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/words.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Transport;

Claim artefact(std::string text, const answer::Record& record) {
    Claim claim{Cause::kMeasurementArtefact, Confidence::kProven};
    claim.evidence.push_back({std::move(text), {record.request.id}, {}, "probe"});
    claim.next = "measure this answer again";
    return claim;
}

}  // namespace

MaybeClaim measurement_artefact(const answer::Record& record, const Context& context) {
    if (context.closed_by_probe)
        return artefact(
            context.interrupted
                ? "the run was interrupted while this answer was coming"
                : "the probe's time was over while this answer was coming, and the probe closed it",
            record);
    if (record.end.transport == Transport::kClosedByUs && record.end.error &&
        contains(record.end.error->text, "is larger than"))
        return artefact(record.end.error->text, record);
    if (record.unread_events > 0 && !has_content(record) && !record.end.error &&
        end_kind(record) == EndKind::kNone)
        return artefact(
            fmt::format("{} events could not be read, and nothing else came", record.unread_events),
            record);
    return std::nullopt;
}

MaybeClaim client_misread(const answer::Record& record, const Context&) {
    if (!looks_natural(record) && end_kind(record) != EndKind::kLength) return std::nullopt;
    std::string shapes;
    const auto note = [&](bool present, std::string_view text) {
        if (present) shapes += (shapes.empty() ? "" : "; ") + std::string(text);
    };
    note(record.comments > 0, fmt::format("{} comment lines", record.comments));
    note(record.shape.crlf_events, "events end in CRLF");
    note(record.shape.tight_data, "no space after `data:`");
    note(record.shape.id_or_retry, "`id:` or `retry:` lines");
    note(record.finish_events > 1,
         fmt::format("{} events with a finish reason", record.finish_events));
    note(record.shape.leading_colon, "text that begins with a colon, as a comment does");
    note(!record.end.terminator && end_kind(record) != EndKind::kNone,
         "a finish reason and no terminator");
    if (shapes.empty()) return std::nullopt;
    Claim claim{Cause::kClientMisread, Confidence::kUnresolved};
    claim.decisive = false;
    claim.why_not =
        "the bytes hold the whole answer; if an application shows less, look there: " + shapes;
    return claim;
}

}  // namespace fullstop::judge
