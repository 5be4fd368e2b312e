// context_limit: the window of the slot or request was full. Needs: a limit below the requested
// one, and P + C equal to the announced window, or constant over answers whose C differs. Refuted
// by: C constant instead (a token limit). prompt_truncated: the server dropped a part of the
// prompt. Needs: fewer prompt tokens reported than for the same prompt alone, or `truncated: true`.
// Recommends: -c by number (slots x window needed), or one shared pool.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "judge/causes/causes.h"
#include "judge/population/memory.h"
#include "judge/signs/end_kind.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

/// BOS, the last sampled token and one reserved cell are counted differently by servers.
constexpr std::int64_t kWindowSlack = 2;

std::optional<std::int64_t> window_of(const Context& context) {
    if (context.server == nullptr || !context.server->window) return std::nullopt;
    return (*context.server->window).count;
}

/// Answers near this one with the same total and another output length.
std::int64_t same_total_elsewhere(const Record& record, const Context& context,
                                  std::int64_t total) {
    const auto equal = [&](const Record* other) {
        const auto theirs = total_tokens_of(*other, context.prompt_tokens);
        return other != &record && end_kind(*other) == EndKind::kLength && theirs &&
               std::abs(*theirs - total) <= kWindowSlack &&
               other->length_tokens() != record.length_tokens();
    };
    return std::ranges::count_if(context.siblings, equal) +
           std::ranges::count_if(context.alone, equal);
}

/// Window sizes that servers are started with: a power of two from 128 up, or three halves of one.
bool usual_window(std::int64_t total) {
    for (std::int64_t size = 128; size <= 1 << 20; size *= 2)
        if (std::abs(total - size) <= kWindowSlack ||
            std::abs(total - size * 3 / 2) <= kWindowSlack)
            return true;
    return false;
}

bool says_truncated(const Record& record) {
    const auto found = record.stop_details.find("truncated");
    return found != record.stop_details.end() && (found->second == "true" || found->second == "1");
}

void advise(Claim& claim, const Record& record, const Context& context, std::int64_t window) {
    const auto need = worst_case(record, context);
    const std::int64_t per_slot = need ? round_up(*need) : 0;
    const std::int64_t slots =
        context.server != nullptr && context.server->slots ? *context.server->slots : 1;
    if (per_slot <= window) {
        claim.remedies.push_back(
            {fmt::format("give each request a window above {} tokens (-c is divided by -np)",
                         window),
             "-c",
             {}});
        return;
    }
    const std::int64_t all = per_slot * slots;
    claim.remedies.push_back(
        {fmt::format("give each of {} slots {} tokens: -c {}", slots, per_slot, all),
         fmt::format("-c {}", all), static_cast<double>(all)});
    const std::int64_t fewer = window * slots / per_slot;
    if (slots > 1 && fewer >= 1)
        claim.remedies.push_back(
            {fmt::format("or split the same memory over fewer slots: -np {}", fewer),
             fmt::format("-np {}", fewer), static_cast<double>(fewer)});
}

}  // namespace

MaybeClaim context_limit(const Record& record, const Context& context) {
    const auto total = total_tokens_of(record, context.prompt_tokens);
    const auto window = window_of(context);
    const bool fills_window = window && total && std::abs(*total - *window) <= kWindowSlack;
    const bool label =
        end_kind(record) == EndKind::kLength && !record.end.error && !transport_broken(record);
    const auto limit = record.requested_max_tokens
                           ? std::optional((*record.requested_max_tokens).count)
                           : std::nullopt;
    if (!total || (limit && record.length_tokens() && *record.length_tokens() >= *limit))
        return std::nullopt;
    // LocalAI labels a full window `stop`; then only the announced window convicts.
    if (!label && !(looks_natural(record) && fills_window)) return std::nullopt;
    const std::int64_t same = same_total_elsewhere(record, context, *total);
    const bool asked = limit || request_known(record);
    const bool constant_output = context.population != nullptr && context.population->limit_output;
    if (!fills_window && same == 0 && !says_truncated(record) &&
        !(asked && !constant_output && usual_window(*total)))
        return std::nullopt;
    Confidence confidence = Confidence::kWeak;
    if (same >= 2 || fills_window) confidence = Confidence::kStrong;
    if ((fills_window && label) || says_truncated(record)) confidence = Confidence::kProven;
    const bool also_time = confidence == Confidence::kStrong && !fills_window &&
                           context.population != nullptr && context.population->limit_generation_ms;
    if (also_time) confidence = Confidence::kWeak;
    Claim claim{Cause::kContextLimit, confidence};
    const std::int64_t prompt = *total - record.length_tokens().value_or(0);
    claim.evidence.push_back(
        {fmt::format(
             "prompt {} + output {} = {} tokens{}{}", prompt, *total - prompt, *total,
             window ? fmt::format(", the window of one request is {}", *window) : std::string(),
             limit ? fmt::format("; {} were asked for", *limit) : std::string()),
         {record.request.id},
         static_cast<double>(*total),
         window ? context.server->window.how : "usage"});
    if (same > 0)
        claim.evidence.push_back(
            {fmt::format("{} answers of other lengths ended at the same total", same),
             {},
             static_cast<double>(*total),
             "invariant P + C"});
    if (also_time)
        claim.evidence.push_back(
            {fmt::format("the time of generation is constant too ({:.1f} s): another concurrency "
                         "would tell a full window from a time limit",
                         context.population->limit_generation_ms->value / 1000),
             {},
             context.population->limit_generation_ms->value,
             "invariant generation time"});
    advise(claim, record, context, *total);
    return claim;
}

MaybeClaim prompt_truncated(const Record& record, const Context& context) {
    if (!record.prompt_tokens || is_victim(record)) return std::nullopt;
    std::int64_t alone = 0;
    for (const Record* baseline : context.baselines)
        if (baseline->prompt_tokens) alone = std::max(alone, (*baseline->prompt_tokens).count);
    const std::int64_t here = (*record.prompt_tokens).count;
    // Ollama of old left cached tokens out of the count: then they are reported as cached, or the
    // drop is the whole prompt but one.
    const std::int64_t cached = record.cached_tokens ? (*record.cached_tokens).count : 0;
    const bool dropped = alone > 0 && here + cached < alone && here > 1 &&
                         alone - here >= std::max<std::int64_t>(2, alone / 20);
    if (!dropped) return std::nullopt;
    Claim claim{Cause::kPromptTruncated, Confidence::kStrong};
    claim.evidence.push_back(
        {fmt::format("the server counted {} prompt tokens here and {} for the same prompt alone",
                     here, alone),
         {record.request.id},
         static_cast<double>(here),
         record.prompt_tokens.how});
    claim.remedies.push_back({fmt::format("raise the window of one request above prompt and answer "
                                          "({} tokens for this prompt alone)",
                                          alone),
                              "num_ctx / -c", static_cast<double>(round_up(alone * 2))});
    return claim;
}

}  // namespace fullstop::judge
