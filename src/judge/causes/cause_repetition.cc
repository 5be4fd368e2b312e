// repetition_guard: the server stopped a loop. Needs: its word (`repetition`, loop_detected,
// repetition_detected), or an end without any reason after some thirty equal chunks (Ollama).
// Refuted by: a tail that does not repeat. Recommends: sampling that does not loop; the guard
// itself is a setting.
#include <fmt/format.h>

#include <string_view>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/words.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

/// Ollama's guard counts more than 30 equal chunks; a chunk that splits a character may hide one or
/// two.
constexpr int kRepeats = 28;

/// How often the shortest repeating unit (1 to 16 bytes) stands at the end of the text.
int tail_repeats(std::string_view text) {
    int best = 0;
    for (std::size_t unit = 1; unit <= 16 && unit * 2 <= text.size(); ++unit) {
        const std::string_view last = text.substr(text.size() - unit);
        int count = 1;
        while (text.size() >= unit * static_cast<std::size_t>(count + 1) &&
               text.substr(text.size() - unit * static_cast<std::size_t>(count + 1), unit) == last)
            ++count;
        best = std::max(best, count);
    }
    return best;
}

}  // namespace

MaybeClaim repetition_guard(const Record& record, const Context&) {
    for (const auto& [name, value] : record.stop_details) {
        if (!contains(value, "loop_detected") && !contains(value, "repetition")) continue;
        Claim claim{Cause::kRepetitionGuard, Confidence::kProven};
        claim.evidence.push_back(
            {fmt::format("{} = {}", name, value), {record.request.id}, {}, name});
        return claim;
    }
    if (end_kind(record) == EndKind::kRepetition) {
        Claim claim{Cause::kRepetitionGuard, Confidence::kProven};
        claim.evidence.push_back(
            {"the finish reason says so", {record.request.id}, {}, "finish_reason"});
        return claim;
    }
    const int repeats = tail_repeats(record.text);
    if (end_kind(record) != EndKind::kNone || record.end.terminator || record.end.error ||
        transport_broken(record) || repeats < kRepeats)
        return std::nullopt;
    Claim claim{Cause::kRepetitionGuard, Confidence::kStrong};
    claim.evidence.push_back(
        {fmt::format("the text ends in {} equal pieces, and then without reason, error or "
                     "terminator: Ollama's guard ends answers so",
                     repeats),
         {record.request.id},
         static_cast<double>(repeats),
         "tail of the text"});
    claim.remedies.push_back(
        {"raise the repeat penalty or the temperature for this prompt; the guard itself cannot be "
         "set",
         "repeat_penalty",
         {}});
    return claim;
}

}  // namespace fullstop::judge
