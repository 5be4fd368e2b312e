// output_lost: tokens were generated and counted, but not delivered. Needs: usage far above what
// came, with thinking, tool calls and special tokens taken off; characters are the measure, never
// the number of events (a chunk is not a token). Refuted by: hidden reasoning that the usage names.
// Recommends: the same request without streaming. reasoning_budget: thinking used up the limit.
// Needs: `length`, reasoning text or tokens, and no answer. Recommends max_tokens.
#include <fmt/format.h>

#include <algorithm>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/words.h"
#include "judge/witnesses/ending.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

/// Characters per token of text alone, from whole answers of the same server: languages and
/// tokenisers differ widely.
std::optional<double> usual_characters_per_token(const Context& context) {
    double characters = 0, tokens = 0;
    for (const Record* other : context.baselines) {
        if (!looks_natural(*other) || !other->output_tokens) continue;
        characters += static_cast<double>(other->text.size() + other->reasoning.size());
        tokens += static_cast<double>((*other->output_tokens).count);
    }
    if (tokens < 10) return std::nullopt;
    return characters / tokens;
}

/// Fewer characters per token than this is rarer than any script or code in the catalogue (CJK has
/// 3 bytes and about 1.5 tokens each; a digit a token).
constexpr double kFewestCharacters = 0.5;

/// What is left of an answer that thinking crowded out: less than this part of it.
constexpr std::size_t kFewAnswers = 8;

/// The end of the text that a server held back because it could begin a stop string.
bool held_back(const Record& record, const Context& context) {
    for (const Record* baseline : context.baselines)
        for (const std::string& stop : record.request.stop)
            for (std::size_t n = 1; n <= stop.size(); ++n)
                if (record.text + stop.substr(0, n) == baseline->text) return true;
    return false;
}

}  // namespace

MaybeClaim output_lost(const Record& record, const Context& context) {
    if (!looks_natural(record)) return std::nullopt;
    if (held_back(record, context)) {
        Claim claim{Cause::kOutputLost, Confidence::kStrong};
        claim.evidence.push_back(
            {"the text lacks an end that begins a stop string: the server held it back and never "
             "sent it",
             {record.request.id},
             {},
             "text and stop list"});
        claim.remedies.push_back({"update the server, or leave that stop string out", "stop", {}});
        return claim;
    }
    if (!record.output_tokens || end_kind(record) == EndKind::kToolCalls) return std::nullopt;
    const auto reasoning = record.reasoning_tokens ? (*record.reasoning_tokens).count : 0;
    const std::int64_t visible =
        (*record.output_tokens).count - (record.reasoning.empty() ? reasoning : 0);
    const auto characters = static_cast<double>(record.text.size() + record.reasoning.size() +
                                                record.tool_calls.size());
    constexpr std::int64_t kSpecialTokens = 8;  // EOS, channel marks
    if (visible <= kSpecialTokens) return std::nullopt;
    const auto usual = usual_characters_per_token(context);
    const double per_token = characters / static_cast<double>(visible);
    const bool lost = per_token < kFewestCharacters ||
                      (usual && per_token < 0.6 * *usual && characters > 0 && visible >= 20);
    if (!lost) return std::nullopt;
    Claim claim{Cause::kOutputLost, characters == 0 ? Confidence::kStrong : Confidence::kWeak};
    claim.evidence.push_back(
        {fmt::format("{} tokens were counted, {:.0f} characters came{}", visible, characters,
                     usual ? fmt::format(" (alone: {:.1f} per token)", *usual) : std::string()),
         {record.request.id},
         static_cast<double>(visible),
         record.output_tokens.how});
    claim.next =
        "repeat with stream: false, and on /v1/completions, which shows the raw text; update the "
        "server if they differ";
    return claim;
}

MaybeClaim reasoning_budget(const Record& record, const Context& context) {
    const bool open_think = contains(record.text, "<think>") && !contains(record.text, "</think>");
    const bool thought = !record.reasoning.empty() || open_think;
    // A word behind the thinking is no answer where the same request alone said more.
    const bool a_word = !record.reasoning.empty() &&
                        std::ranges::any_of(context.baselines, [&](const Record* alone) {
                            return record.text.size() * kFewAnswers < alone->text.size();
                        });
    const bool no_answer =
        record.text.empty() || open_think || record.text == record.reasoning || a_word;
    if (end_kind(record) != EndKind::kLength || record.end.error || !thought || !no_answer)
        return std::nullopt;
    Claim claim{Cause::kReasoningBudget, Confidence::kProven};
    const auto length = record.length_tokens();
    claim.evidence.push_back(
        {fmt::format("the limit was reached{} with {} bytes of thinking and no answer",
                     length ? fmt::format(" at {} tokens", *length) : std::string(),
                     std::max(record.reasoning.size(), record.text.size())),
         {record.request.id},
         {},
         "finish_reason and reasoning"});
    const double number = length ? static_cast<double>(*length * 2) : 0;
    claim.remedies.push_back(
        {length ? fmt::format("raise max_tokens to {:.0f} or more, or limit or switch off thinking",
                              number)
                : std::string("raise max_tokens, or limit or switch off thinking"),
         length ? fmt::format("max_tokens {:.0f}", number) : "max_tokens",
         length ? std::optional(number) : std::nullopt});
    return claim;
}

}  // namespace fullstop::judge
