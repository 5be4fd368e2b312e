// The order of decision, and the choice among claims.
#include "judge/causes/claim.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/witnesses/coverage.h"
#include "judge/witnesses/ending.h"
#include "judge/witnesses/prefix.h"

namespace fullstop::judge {
namespace {

using answer::Confidence;
using answer::Effect;

constexpr std::array kOrder = {
    CauseTest{"server_stall", server_stall},
    // made by us
    CauseTest{"measurement_artefact", measurement_artefact},
    CauseTest{
        "cancelled_by_other",
        cancelled_by_other},  // a stall outlasts any client's patience: why it began comes first
    CauseTest{"client_deadline", client_deadline},
    CauseTest{"client_idle_timeout", client_idle_timeout},
    CauseTest{"client_cancelled", client_cancelled},
    CauseTest{"reported_by_fullstop", reported_by_fullstop},
    // explicit errors
    CauseTest{"kv_pool_error", kv_pool_error},
    CauseTest{"out_of_memory", out_of_memory},
    CauseTest{"aborted_by_server", aborted_by_server},
    CauseTest{"generation_time_limit", generation_time_limit},
    CauseTest{"model_unloaded", model_unloaded},
    CauseTest{"gateway_reported_timeout", gateway_reported_timeout},
    CauseTest{"engine_death", engine_death},
    CauseTest{"gateway_rejected", gateway_rejected},
    CauseTest{"admission_rejected", admission_rejected},
    CauseTest{"request_rejected", request_rejected},
    CauseTest{"server_error", server_error},
    // broken bodies
    CauseTest{"gateway_idle_timeout", gateway_idle_timeout},
    CauseTest{"gateway_deadline", gateway_deadline},
    CauseTest{"connection_broken", connection_broken},
    // silent ends
    CauseTest{"displaced_by_arrival", displaced_by_arrival},
    CauseTest{"repetition_guard", repetition_guard},
    CauseTest{"silent_end", silent_end},
    CauseTest{"answers_mixed", answers_mixed},
    // limits
    CauseTest{"masked_error", masked_error},
    CauseTest{"reasoning_budget", reasoning_budget},
    CauseTest{"token_limit", token_limit},
    CauseTest{"context_limit", context_limit},
    CauseTest{"gateway_token_budget", gateway_token_budget},
    CauseTest{"default_token_limit", default_token_limit},
    CauseTest{"unclear_limit", unclear_limit},
    // finished, it says
    CauseTest{"kv_pool_mislabelled", kv_pool_mislabelled},
    CauseTest{"mislabelled_limit", mislabelled_limit},
    CauseTest{"output_lost", output_lost},
    CauseTest{"stop_string", stop_string},
    CauseTest{"gateway_rewrite", gateway_rewrite},
    CauseTest{"suspicious_stop", suspicious_stop},
    CauseTest{"prompt_truncated", prompt_truncated},
    CauseTest{"natural_end", natural_end},
    // never the cause of one answer alone, worth naming
    CauseTest{"numeric_divergence", numeric_divergence},
    CauseTest{"preempted", preempted},
    CauseTest{"client_misread", client_misread},
};

Claim unexplained(const answer::Record& record) {
    Claim claim{answer::Cause::kUnexplained, Confidence::kUnresolved};
    claim.evidence.push_back(
        {fmt::format("finish reason {}, terminator {}, transport {}", reason_word(record),
                     record.end.terminator ? "seen" : "not seen",
                     answer::to_string(record.end.transport)),
         {record.request.id},
         {},
         "end facts"});
    claim.next = "record the same request at the server's own port and compare the two ends";
    if (is_victim(record)) claim.shortened = true;
    return claim;
}

/// The first decisive claim; without one the most confident candidate that is a cause of ends at
/// all.
std::size_t choose(const std::vector<Claim>& claims) {
    for (std::size_t i = 0; i < claims.size(); ++i)
        if (claims[i].decisive) return i;
    return claims.size();
}

void add_witnesses(Finding& finding, const answer::Record& record, const Context& context) {
    if (context.prompt != nullptr && !context.prompt->check.empty()) {
        if (const auto coverage = coverage_of(record.text, context.prompt->check))
            finding.coverage =
                answer::Fact<double>::measured(*coverage, "the prompt's own check on the text");
        else
            finding.coverage = answer::Fact<double>::unavailable(
                "the prompt's check could not be run on this text");
    }
    finding.prefix_of_baseline = prefix_of_baseline(record, context.baselines);
    finding.open_ending = ending_of(record.text).open;
}

}  // namespace

std::span<const CauseTest> decision_order() { return kOrder; }

std::optional<bool> shortened_by(answer::Cause cause) {
    switch (answer::entry(cause).effect) {
        case Effect::kComplete:
        case Effect::kAskedFor: return false;
        case Effect::kShortened: return true;
        case Effect::kRefused:
        case Effect::kUndecided: return std::nullopt;
    }
    return std::nullopt;
}

Conclusion conclude(const answer::Record& record, const Context& context) {
    std::vector<Claim> claims;
    for (const CauseTest& test : decision_order())
        if (auto claim = test.claim(record, context)) claims.push_back(std::move(*claim));
    std::size_t chosen = choose(claims);
    if (chosen == claims.size()) claims.push_back(unexplained(record));
    const Claim& winner = claims[chosen];
    Conclusion result;
    result.finding.cause = winner.cause;
    result.finding.layer = winner.layer.value_or(answer::entry(winner.cause).layer);
    result.finding.confidence = winner.confidence;
    result.finding.shortened = winner.shortened ? winner.shortened : shortened_by(winner.cause);
    result.finding.evidence = winner.evidence;
    result.finding.next = winner.next.empty() && !winner.remedies.empty()
                              ? winner.remedies.front().text
                              : winner.next;
    result.remedies = winner.remedies;
    for (std::size_t i = 0; i < claims.size(); ++i) {
        // "Unexplained" and "some error" are what is left when nothing better is known: no
        // alternatives.
        const bool leftover = claims[i].cause == answer::Cause::kUnexplained ||
                              claims[i].cause == answer::Cause::kServerError;
        if (i == chosen || claims[i].cause == winner.cause || leftover) continue;
        std::string why = claims[i].why_not;
        if (why.empty())
            why = fmt::format("{} rests on harder evidence", answer::to_string(winner.cause));
        result.finding.alternatives.push_back({claims[i].cause, why});
    }
    add_witnesses(result.finding, record, context);
    return result;
}

}  // namespace fullstop::judge
