// kv_pool_exhausted, in two shapes. With an error: needs the server's own words (llama-server:
// "Context size has been exceeded", sent to every slot). Mislabelled as a natural end (LocalAI,
// OVMS): needs three answers or more that end in one instant with open endings, and their tokens
// summing to the pool. Refuted by: ends scattered in time, or a sum far from the pool. Recommends
// -c, -np and max_tokens with the numbers that suffice. preempted: a pause, never a cut. Needs a
// silence inside a whole answer far beyond its usual gap; a counter makes it proven.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/causes/causes.h"
#include "judge/population/memory.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/error_class.h"
#include "judge/signs/gaps.h"
#include "judge/signs/words.h"
#include "judge/witnesses/ending.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

std::vector<std::string> ids(const std::vector<const Record*>& records) {
    std::vector<std::string> result;
    for (const Record* record : records) result.push_back(record->request.id);
    return result;
}

/// "8 live answers held 1019 tokens (prompt + answer), the pool has 1024": the arithmetic, as far
/// as it is known.
std::optional<Evidence> arithmetic(const Cluster& cluster, const Context& context) {
    if (!cluster.tokens_live) return std::nullopt;
    const auto pool = pool_of(context.server);
    std::string text =
        fmt::format("{} live answers held {} tokens (prompt + answer) when {} of them ended",
                    cluster.live, *cluster.tokens_live, cluster.members.size());
    if (pool) text += fmt::format("; the pool holds {} ({})", pool->tokens, pool->how);
    return Evidence{text, ids(cluster.members), static_cast<double>(*cluster.tokens_live),
                    "sum of P + C"};
}

/// Within a tenth of the pool: prompts in prefill and padding are not counted.
bool fills_pool(const Cluster& cluster, const Context& context) {
    const auto pool = pool_of(context.server);
    return pool && cluster.tokens_live &&
           std::abs(static_cast<double>(*cluster.tokens_live - pool->tokens)) <=
               0.1 * static_cast<double>(pool->tokens);
}

}  // namespace

MaybeClaim kv_pool_error(const Record& record, const Context& context) {
    const auto* error = decisive_error(record);
    const auto kind = error != nullptr ? classify(*error) : std::nullopt;
    if (!kind || kind->cause != Cause::kKvPoolExhausted) return std::nullopt;
    Claim claim{Cause::kKvPoolExhausted, Confidence::kProven};
    claim.evidence.push_back(
        {fmt::format("\"{}\": {}", one_line(error->text, 160), kind->reading),
         {record.request.id},
         {},
         error->where == answer::ErrorPlace::kHttp ? "HTTP body" : "error event"});
    const Cluster* cluster =
        context.population != nullptr ? cluster_of(context.population->clusters, record) : nullptr;
    if (cluster != nullptr) {
        claim.evidence.push_back(
            {fmt::format("{} answers ended within {} ms", cluster->members.size(),
                         kSimultaneous / std::chrono::milliseconds(1)),
             ids(cluster->members), static_cast<double>(cluster->members.size()), "simultaneity"});
        if (auto sum = arithmetic(*cluster, context)) claim.evidence.push_back(std::move(*sum));
    }
    claim.remedies = pool_remedies(record, context);
    return claim;
}

MaybeClaim kv_pool_mislabelled(const Record& record, const Context& context) {
    if (!looks_natural(record) || context.population == nullptr) return std::nullopt;
    const Cluster* cluster = cluster_of(context.population->quiet_clusters, record);
    if (cluster == nullptr || cluster->members.size() < 3) return std::nullopt;
    const auto open = std::ranges::count_if(
        cluster->members, [](const Record* r) { return ending_of(r->text).open; });
    if (open * 2 < static_cast<std::ptrdiff_t>(cluster->members.size())) return std::nullopt;
    // That slots share a pool is a guess for most servers; here it must have been told.
    const bool told =
        context.server != nullptr &&
        (context.server->pool || (context.server->shared_pool && *context.server->shared_pool));
    const bool full = told && fills_pool(*cluster, context);
    Claim claim{Cause::kKvPoolExhausted, full ? Confidence::kStrong : Confidence::kWeak};
    claim.evidence.push_back({fmt::format("{} answers end in one instant, {} of them in the middle "
                                          "of a sentence, all labelled {}",
                                          cluster->members.size(), open, reason_word(record)),
                              ids(cluster->members), static_cast<double>(cluster->members.size()),
                              "simultaneity"});
    if (auto sum = arithmetic(*cluster, context)) claim.evidence.push_back(std::move(*sum));
    claim.remedies = pool_remedies(record, context);
    claim.decisive = full;
    claim.why_not = "answers ended together, but their tokens do not sum to a known pool";
    return claim;
}

MaybeClaim preempted(const Record& record, const Context& context) {
    if (is_victim(record) || end_kind(record) == EndKind::kNone) return std::nullopt;
    const auto pause = longest_pause(record);
    const bool reported = record.preemptions && *record.preemptions > 0;
    if (!pause && !reported) return std::nullopt;
    const bool counted = reported || context.preemptions.value_or(0) > 0;
    Claim claim{Cause::kPreempted, counted ? Confidence::kProven : Confidence::kWeak};
    claim.decisive = false;
    claim.why_not =
        pause ? fmt::format("paused for {:.1f} s{} and resumed: a pause, not a cut", *pause / 1000,
                            counted ? " while the server's preemption counter moved" : "")
              : "the server reports a preemption; the answer went on: a pause, not a cut";
    return claim;
}

}  // namespace fullstop::judge
