// A cause that the server says itself: `fullstop.stop.cause` of a fullstop server or gateway.
// Needs: the word is one of the contract and the end facts do not contradict it (a shortened answer
// must not carry finish reason and terminator of a whole one). Refuted by: that contradiction.
// Recommends what the cause recommends.
#include <fmt/format.h>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"

namespace fullstop::judge {

MaybeClaim reported_by_fullstop(const answer::Record& record, const Context&) {
    if (!record.fullstop_cause) return std::nullopt;
    const auto cause = answer::parse_cause(*record.fullstop_cause);
    if (!cause) return std::nullopt;
    const auto effect = answer::entry(*cause).effect;
    const bool contradicted =
        (effect == answer::Effect::kShortened && looks_natural(record) && record.end.terminator) ||
        (effect == answer::Effect::kComplete && (record.end.error || transport_broken(record)));
    Claim claim{*cause,
                contradicted ? answer::Confidence::kUnresolved : answer::Confidence::kProven};
    claim.decisive = !contradicted;
    claim.why_not = "the server named it, but the end facts say otherwise";
    claim.evidence.push_back({fmt::format("the server itself names {}", *record.fullstop_cause),
                              {record.request.id},
                              {},
                              "fullstop.stop.cause"});
    return claim;
}

}  // namespace fullstop::judge
