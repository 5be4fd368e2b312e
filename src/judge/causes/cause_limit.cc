// token_limit, default_token_limit, generation_time_limit, masked_error, unclear_limit: the server
// says `length`. Needs: C == the requested limit (token_limit); C the same for several prompts and
// below it, or the server's announced default (default_token_limit); a generation time that is the
// same for several answers (generation_time_limit); zero tokens (masked_error: no limit is zero).
// Refuted by: P + C constant, which is context_limit. Recommends max_tokens by number.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/error_class.h"
#include "judge/signs/words.h"
#include "judge/witnesses/ending.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

bool limited(const Record& record) {
    return end_kind(record) == EndKind::kLength && !record.end.error && !transport_broken(record);
}

std::optional<std::int64_t> requested(const Record& record) {
    return record.requested_max_tokens ? std::optional((*record.requested_max_tokens).count)
                                       : std::nullopt;
}

/// Defaults that servers apply when nothing is asked for (catalogue 3.3).
constexpr std::array<std::int64_t, 6> kDefaults = {16, 100, 128, 256, 512, 4096};

/// Nearby answers with this output length and another prompt: a constant is one only over different
/// prompts.
std::int64_t same_length_elsewhere(const Record& record, const Context& context,
                                   std::int64_t length) {
    const auto equal = [&](const Record* other) {
        return other != &record && other->request.prompt_id != record.request.prompt_id &&
               end_kind(*other) == EndKind::kLength && other->length_tokens() == length;
    };
    return std::ranges::count_if(context.siblings, equal) +
           std::ranges::count_if(context.alone, equal);
}

/// Bytes of a token: of English and code three to five.
constexpr std::size_t kFewestBytes = 2;

/// Where no tokens are reported: the same request alone ended by a limit too, with as much text.
bool as_long_as_alone(const Record& record, const Context& context) {
    return std::ranges::any_of(context.baselines, [&](const Record* alone) {
        return end_kind(*alone) == EndKind::kLength && !alone->end.error && !alone->text.empty() &&
               record.text.size() * 4 >= alone->text.size() * 3;
    });
}

/// At one concurrency every answer is as fast as the other, so a constant time makes a constant
/// length too: then only another concurrency can tell. A window or a token limit stays there what
/// it was, a time limit leaves another length.
bool time_alone_is_constant(const Context& context) {
    if (!context.population->limit_output && !context.population->limit_total) return true;
    const Population* arm = context.arm_population;
    return arm != nullptr && arm->limit_generation_ms && !arm->limit_output && !arm->limit_total &&
           arm->limit_generation_ms->answers > context.population->limit_generation_ms->answers;
}

}  // namespace

MaybeClaim token_limit(const Record& record, const Context& context) {
    const auto length = record.length_tokens();
    const auto limit = requested(record);
    const bool reached = length && limit && *length > 0 &&
                         (*length == *limit || *length == *limit - 1);  // LM Studio counts one less
    if (limited(record)) {
        if (limit && !reached) {
            if (!record.output_tokens && as_long_as_alone(record, context) &&
                record.text.size() >= kFewestBytes * static_cast<std::size_t>(*limit)) {
                Claim claim{Cause::kTokenLimit, Confidence::kWeak};
                claim.evidence.push_back(
                    {fmt::format("labelled {}, as the same request alone, with a text as long; "
                                 "tokens are not reported, and events are no tokens",
                                 reason_word(record)),
                     {record.request.id},
                     static_cast<double>(record.text.size()),
                     "text"});
                return claim;
            }
            if (!record.output_tokens && record.text_events + 1 >= *limit) {
                Claim claim{Cause::kTokenLimit, Confidence::kStrong};
                claim.evidence.push_back(
                    {fmt::format("{} text events for a limit of {}, labelled {}",
                                 record.text_events, *limit, reason_word(record)),
                     {record.request.id},
                     static_cast<double>(*limit),
                     "finish_reason"});
                return claim;
            }
            return std::nullopt;
        }
        if (!limit && request_known(record)) return std::nullopt;
        Claim claim{Cause::kTokenLimit, limit ? Confidence::kProven : Confidence::kWeak};
        if (!limit) {
            // Without the request a limit is all that is known; whose limit is the caller's to say.
            // Several alike speak for one.
            claim.evidence.push_back(
                {fmt::format("the server says {} after {} tokens; the request is not known here, "
                             "so whose limit it was is not either",
                             reason_word(record), length.value_or(record.text_events)),
                 {record.request.id},
                 {},
                 "finish_reason"});
            claim.next =
                "give the request (--request) to tell the asked-for limit from a hidden one";
            return claim;
        }
        claim.evidence.push_back({fmt::format("{} of {} asked-for tokens, labelled {}", *length,
                                              *limit, reason_word(record)),
                                  {record.request.id},
                                  static_cast<double>(*limit),
                                  "usage and request"});
        return claim;
    }
    // A translator may turn `length` into `stop`: the count and an open text together give it away.
    const Ending ending = record.tool_calls.empty()
                              ? ending_of(record.text)
                              : Ending{!json_closed(record.tool_calls), true,
                                       "the arguments of the tool call are left open"};
    // The Responses of llama-server call everything completed, and a hop may close a cut call.
    const bool vague = record.end.reason == "completed" || !record.tool_calls.empty();
    if (!looks_natural(record) || !reached || !(ending.open || vague)) return std::nullopt;
    Claim claim{Cause::kTokenLimit, ending.open ? Confidence::kStrong : Confidence::kWeak};
    claim.evidence.push_back(
        {ending.open
             ? fmt::format(
                   "{} of {} asked-for tokens and {}, although it is labelled {}: the label "
                   "is wrong",
                   *length, *limit, ending.what, reason_word(record))
             : fmt::format("{} of {} asked-for tokens: just the limit, although it is labelled {}",
                           *length, *limit, reason_word(record)),
         {record.request.id},
         static_cast<double>(*limit),
         "usage and request"});
    claim.remedies.push_back(
        {fmt::format("raise max_tokens above {}; do not act on this answer as if it were whole",
                     *limit),
         "max_tokens", static_cast<double>(*limit * 2)});
    return claim;
}

MaybeClaim default_token_limit(const Record& record, const Context& context) {
    const auto length = record.length_tokens();
    const auto limit = requested(record);
    if (!limited(record) || !length || *length <= 0) return std::nullopt;
    const bool unasked = !limit && request_known(record);
    if ((!limit && !unasked) || (limit && *length >= *limit - 1)) return std::nullopt;
    const bool announced = context.server != nullptr && context.server->default_max_tokens &&
                           std::abs((*context.server->default_max_tokens).count - *length) <= 1;
    const bool effective =
        record.effective_max_tokens && (*record.effective_max_tokens).count == *length;
    const std::int64_t same = same_length_elsewhere(record, context, *length);
    const bool usual = std::ranges::find(kDefaults, *length) != kDefaults.end();
    if (!announced && !effective && same == 0 && !usual && !unasked) return std::nullopt;
    Confidence confidence = Confidence::kWeak;
    if (same >= 2) confidence = Confidence::kStrong;
    if (announced || effective) confidence = Confidence::kProven;
    Claim claim{Cause::kDefaultTokenLimit, confidence};
    claim.evidence.push_back({fmt::format("ended at {} tokens by a limit, {}", *length,
                                          limit ? fmt::format("although {} were asked for", *limit)
                                                : std::string("although none was asked for")),
                              {record.request.id},
                              static_cast<double>(*length),
                              "usage"});
    if (same > 0)
        claim.evidence.push_back(
            {fmt::format("{} answers to other prompts ended at the same length", same),
             {},
             static_cast<double>(same),
             "invariant C"});
    if (announced || effective)
        claim.evidence.push_back(
            {"the server announces this limit",
             {},
             static_cast<double>(*length),
             announced ? context.server->default_max_tokens.how : record.effective_max_tokens.how});
    claim.remedies.push_back(
        {limit
             ? fmt::format("raise the server's own limit (generation config, -n, --genlimit) to {}",
                           *limit)
             : std::string("send max_tokens with every request, or raise the server's default"),
         limit ? fmt::format("limit {}", *limit) : "max_tokens",
         limit ? std::optional(static_cast<double>(*limit)) : std::nullopt});
    return claim;
}

MaybeClaim generation_time_limit(const Record& record, const Context& context) {
    const auto* error = decisive_error(record);
    const auto kind = error != nullptr ? classify(*error) : std::nullopt;
    if (kind && kind->cause == Cause::kGenerationTimeLimit) {
        Claim claim{Cause::kGenerationTimeLimit, Confidence::kProven};
        claim.evidence.push_back(
            {fmt::format("\"{}\": {}", one_line(error->text, 160), kind->reading),
             {record.request.id},
             {},
             "error event"});
        return claim;
    }
    if (record.deadline_fired == answer::DeadlineFired::kServer) {
        Claim claim{Cause::kGenerationTimeLimit, Confidence::kProven};
        claim.evidence.push_back({"the server says that its deadline ended the answer",
                                  {record.request.id},
                                  {},
                                  record.server_deadline_ms.how});
        return claim;
    }
    if (!limited(record) || context.population == nullptr ||
        !context.population->limit_generation_ms)
        return std::nullopt;
    const Invariant& time = *context.population->limit_generation_ms;
    const auto limit = requested(record);
    if (!record.output_tokens || time.answers < 3 || time.value < 1000 ||
        !time_alone_is_constant(context) ||
        (limit && record.length_tokens() && *record.length_tokens() >= *limit - 1))
        return std::nullopt;
    Claim claim{Cause::kGenerationTimeLimit, Confidence::kStrong};
    claim.evidence.push_back(
        {fmt::format("{} answers of different length were all generated for {:.1f} s", time.answers,
                     time.value / 1000),
         {record.request.id},
         time.value,
         "invariant generation time"});
    claim.remedies.push_back(
        {"lift the server's limit on generation time (t_max_predict_ms), or lower the load until "
         "answers fit it",
         "t_max_predict_ms",
         {}});
    return claim;
}

MaybeClaim masked_error(const Record& record, const Context&) {
    const bool zero = record.output_tokens && (*record.output_tokens).count == 0;
    if (!limited(record) || !zero || has_content(record)) return std::nullopt;
    Claim claim{Cause::kServerError, Confidence::kStrong};
    claim.evidence.push_back(
        {fmt::format("labelled {} with 0 tokens: no limit is zero, so the label hides an error "
                     "(prompt too long, no KV room, a failed scheduler)",
                     reason_word(record)),
         {record.request.id},
         0.0,
         "usage"});
    claim.next = "compare prompt tokens with the server's window, and read its log";
    return claim;
}

MaybeClaim unclear_limit(const Record& record, const Context&) {
    if (!limited(record)) return std::nullopt;
    // KoboldCpp calls a stop string `length`; nothing else ends below limit and window.
    Claim claim{Cause::kUnexplained, Confidence::kUnresolved};
    claim.evidence.push_back(
        {fmt::format("a limit at {} tokens that is neither the requested one nor a constant",
                     record.length_tokens().value_or(record.text_events)),
         {record.request.id},
         {},
         "finish_reason"});
    claim.next =
        "ask the server's native endpoint for its stop type (llama-server: stop_type, truncated; "
        "KoboldCpp: stop_reason 2 is a stop string)";
    return claim;
}

}  // namespace fullstop::judge
