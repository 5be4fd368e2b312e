// gateway_token_budget: an effective limit below the requested one that moves with load. Needs: a
// hop that announces it (effective limit in a header), or `length` at other values than the same
// prompt reaches alone, below the limit asked for. Refuted by: P + C constant (context_limit) or
// the same C alone (default_token_limit). Recommends: the budget that suffices.
#include <fmt/format.h>

#include <limits>
#include <map>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"

namespace fullstop::judge {
namespace {

/// Answers end at a constant length at each concurrency, and the more users the lower it is.
bool falls_with_load(const std::map<int, Invariant>& limits) {
    if (limits.size() < 2) return false;
    double last = std::numeric_limits<double>::infinity();
    for (const auto& [concurrency, limit] : limits) {
        if (limit.answers < 3 || limit.value > last - 2) return false;
        last = limit.value;
    }
    return true;
}

}  // namespace

MaybeClaim gateway_token_budget(const answer::Record& record, const Context& context) {
    using answer::Cause;
    using answer::Confidence;
    const auto length = record.length_tokens();
    if (end_kind(record) != EndKind::kLength || record.end.error || !length ||
        !record.requested_max_tokens)
        return std::nullopt;
    const std::int64_t limit = (*record.requested_max_tokens).count;
    if (*length >= limit - 1) return std::nullopt;
    const auto announced = record.headers.find("fullstop-effective-max-tokens");
    const bool says =
        announced != record.headers.end() && announced->second == std::to_string(*length);
    bool longer_alone = false;
    for (const auto* baseline : context.baselines)
        longer_alone = longer_alone || (baseline->length_tokens().value_or(0) > *length + 1);
    const bool constant = context.population != nullptr && context.population->limit_output &&
                          context.population->limit_output->answers >= 3;
    const bool moves = falls_with_load(context.limits);
    if (!says && !moves && !(constant && longer_alone)) return std::nullopt;
    Claim claim{Cause::kGatewayTokenBudget, says ? Confidence::kProven : Confidence::kStrong};
    claim.evidence.push_back(
        {fmt::format("ended by a limit at {} of {} asked-for tokens{}", *length, limit,
                     longer_alone ? "; the same request alone went on" : ""),
         {record.request.id},
         static_cast<double>(*length),
         says ? "Fullstop-Effective-Max-Tokens" : "usage"});
    if (moves)
        claim.evidence.push_back(
            {fmt::format("the limit falls as users come: {:.0f} tokens at {}, {:.0f} at {}",
                         context.limits.begin()->second.value, context.limits.begin()->first,
                         context.limits.rbegin()->second.value, context.limits.rbegin()->first),
             {},
             {},
             "limits by level"});
    if (constant)
        claim.evidence.push_back({fmt::format("{} answers of this level ended at the same length",
                                              context.population->limit_output->answers),
                                  {},
                                  context.population->limit_output->value,
                                  "invariant C"});
    claim.remedies.push_back(
        {fmt::format(
             "raise the gateway's token budget under load to {}, or let requests queue instead",
             limit),
         fmt::format("budget {}", limit), static_cast<double>(limit)});
    return claim;
}

}  // namespace fullstop::judge
