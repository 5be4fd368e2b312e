// stop_string, natural_end, suspicious_stop, mislabelled_limit, numeric_divergence: the server says
// it finished. mislabelled_limit (default_token_limit, context_limit) needs: one user alone gets
// answers to several prompts that end at one and the same length, most in mid-sentence, none later.
// stop_string needs: the string that matched. natural_end needs: the word and nothing against it;
// evidence of EOS raises it. suspicious_stop (unexplained) needs: a strict prefix of what the same
// request said alone, or an open text behind a hop that is known to invent ends. numeric_divergence
// is never the cause of one answer: it says that the text left the baseline before its end.
// Recommends: fp32 or a batch-invariant mode, more seeds, temperature 0.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/hop.h"
#include "judge/signs/words.h"
#include "judge/witnesses/ending.h"
#include "judge/witnesses/prefix.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

constexpr std::array<std::string_view, 5> kStopStringFields = {
    "stopping_word", "stop_str", "matched_stop", "stop_reason", "stop_sequence"};

/// Text in a field that names the matched stop string. A number is a token id: EOS, not a string.
std::optional<std::pair<std::string, std::string>> matched_string(const Record& record) {
    for (const std::string_view field : kStopStringFields) {
        const auto found = record.stop_details.find(std::string(field));
        if (found == record.stop_details.end()) continue;
        const std::string& value = found->second;
        const bool number =
            !value.empty() && value.find_first_not_of("0123456789-") == std::string::npos;
        if (value.empty() || value == "null" || value == "\"\"" || value == "repetition_detected" ||
            number)
            continue;
        return std::pair(std::string(field), value);
    }
    return std::nullopt;
}

bool says_eos(const Record& record) {
    const auto names_it = [](const auto& detail) { return answer::names_end_token(detail.second); };
    return std::ranges::any_of(record.stop_details, names_it) ||
           (record.end.reason && answer::names_end_token(*record.end.reason));
}

bool open_alone(const Context& context) {
    return std::ranges::any_of(
        context.baselines, [](const Record* baseline) { return ending_of(baseline->text).open; });
}

/// Labelled finished, and there is nothing, or only thinking, where the same request alone said
/// something.
Claim emptied(const Record& record) {
    Claim claim{Cause::kUnexplained, Confidence::kUnresolved};
    claim.shortened = true;
    claim.evidence.push_back(
        {fmt::format("labelled {} with {}; alone the same request had an answer",
                     reason_word(record),
                     record.reasoning.empty() ? "no text at all" : "thinking and no answer"),
         {record.request.id},
         {},
         "text"});
    claim.next =
        "repeat without streaming and at the server's own port: if the text is there, it is "
        "lost on the way";
    return claim;
}

/// A finished tool call has arguments that are whole JSON.
MaybeClaim open_call(const Record& record) {
    if (json_closed(record.tool_calls)) return std::nullopt;
    Claim claim{Cause::kUnexplained, Confidence::kUnresolved};
    claim.shortened = true;
    claim.evidence.push_back(
        {fmt::format("labelled {}, but the arguments of the tool call are left "
                     "open: \"...{}\"",
                     reason_word(record), tail(record.tool_calls, 40)),
         {record.request.id},
         {},
         "tool call"});
    claim.next = "raise max_tokens, and repeat at the server's own port";
    return claim;
}

/// A length at which answers alone end, whatever was asked.
struct Wall {
    std::int64_t tokens = 0;
    std::int64_t answers = 0;
    bool of_window = false;  ///< prompt and answer together
};

constexpr std::int64_t kLeastAtWall = 4;
constexpr std::size_t kLeastPrompts = 3;

template <class Length>
std::optional<Wall> wall_of(const std::vector<const Record*>& group, const Length& length) {
    std::map<std::int64_t, std::vector<const Record*>> lengths;
    for (const Record* one : group)
        if (looks_natural(*one) && one->tool_calls.empty() && !one->text.empty())
            if (const auto tokens = length(*one)) lengths[*tokens].push_back(one);
    if (lengths.empty()) return std::nullopt;
    const auto& [tokens, answers] = *lengths.rbegin();
    std::set<std::string> prompts;
    std::set<std::int64_t> outputs;
    for (const Record* one : answers) {
        prompts.insert(one->request.prompt_id);
        outputs.insert(one->length_tokens().value_or(0));
    }
    const auto open =
        std::ranges::count_if(answers, [](const Record* one) { return ending_of(one->text).open; });
    if (std::ssize(answers) < kLeastAtWall || prompts.size() < kLeastPrompts ||
        open * 2 < std::ssize(answers))
        return std::nullopt;
    return Wall{tokens, std::ssize(answers), outputs.size() > 1};
}

Claim ended_at(const Wall& wall, const Record& record) {
    Claim claim{wall.of_window ? Cause::kContextLimit : Cause::kDefaultTokenLimit,
                Confidence::kStrong};
    claim.evidence.push_back(
        {fmt::format("labelled {} at {} tokens{}; alone {} answers to several prompts end just "
                     "there, most in the middle of a sentence, and none later",
                     reason_word(record), wall.tokens,
                     wall.of_window ? " of prompt and answer" : "", wall.answers),
         {record.request.id},
         static_cast<double>(wall.tokens),
         wall.of_window ? "invariant P + C" : "invariant C"});
    claim.remedies.push_back(
        {wall.of_window
             ? fmt::format("give each request a window above {} tokens", wall.tokens)
             : fmt::format("find what limits answers to {} tokens in the server's settings and "
                           "raise it; send max_tokens with every request",
                           wall.tokens),
         wall.of_window ? "context" : "max_tokens", static_cast<double>(wall.tokens)});
    return claim;
}

/// Most answers alone went on beyond this length.
bool longer_alone(const Context& context, std::int64_t tokens) {
    const auto longer = std::ranges::count_if(context.alone, [&](const Record* one) {
        return one->length_tokens().value_or(0) > tokens;
    });
    return longer * 2 > std::ssize(context.alone);
}

Claim ended_under_load(const Wall& wall, const Record& record) {
    Claim claim{Cause::kGatewayTokenBudget, Confidence::kWeak};
    claim.evidence.push_back(
        {fmt::format("labelled {} at {} tokens; {} answers of {} users end just there, most in the "
                     "middle of a sentence, and most answers alone are longer",
                     reason_word(record), wall.tokens, wall.answers, record.request.concurrency),
         {record.request.id},
         static_cast<double>(wall.tokens),
         "invariant C"});
    claim.next =
        "look for a limit on output tokens that depends on load, in the gateway and in the server; "
        "--control tells whose it is";
    return claim;
}

}  // namespace

MaybeClaim mislabelled_limit(const Record& record, const Context& context) {
    if (!looks_natural(record) || !record.tool_calls.empty() || record.text.empty() ||
        !ending_of(record.text).open)
        return std::nullopt;
    const auto output = [](const Record& one) { return one.length_tokens(); };
    const auto total = [&](const Record& one) {
        return total_tokens_of(one, context.prompt_tokens);
    };
    if (const auto wall = wall_of(context.alone, output); wall && output(record) == wall->tokens)
        return ended_at({wall->tokens, wall->answers, false}, record);
    if (const auto wall = wall_of(context.alone, total);
        wall && wall->of_window && total(record) == wall->tokens)
        return ended_at(*wall, record);
    if (const auto wall = wall_of(context.siblings, output);
        wall && output(record) == wall->tokens && longer_alone(context, wall->tokens))
        return ended_under_load(*wall, record);
    return std::nullopt;
}

MaybeClaim stop_string(const Record& record, const Context&) {
    if (record.end.error || transport_broken(record)) return std::nullopt;
    const auto matched = matched_string(record);
    const bool word = end_kind(record) == EndKind::kStopString;
    if (!word && !(matched && (looks_natural(record) || end_kind(record) == EndKind::kLength)))
        return std::nullopt;
    Claim claim{Cause::kStopString, Confidence::kProven};
    claim.evidence.push_back({matched ? fmt::format("{} = {}", matched->first, matched->second)
                                      : fmt::format("finish reason {}", reason_word(record)),
                              {record.request.id},
                              {},
                              matched ? matched->first : "finish_reason"});
    return claim;
}

MaybeClaim suspicious_stop(const Record& record, const Context& context) {
    if (!looks_natural(record)) return std::nullopt;
    if (came_empty(record, context.baselines)) return emptied(record);
    if (!record.tool_calls.empty()) return open_call(record);
    if (says_eos(record)) return std::nullopt;
    const Ending ending = ending_of(record.text);
    const auto hop = gateway_of(record);
    const bool prefix = prefix_of_baseline(record, context.baselines).value_or(false);
    const bool open = ending.open && !open_alone(context);
    const bool invented = open && ((hop && invents_ends(*hop)) || ending.structural);
    // A flipped EOS is a strict prefix too, but at the end of a sentence: only the open one is
    // suspicious.
    if (!(prefix && open) && !invented) return std::nullopt;
    Claim claim{Cause::kUnexplained, Confidence::kUnresolved};
    if (prefix)
        claim.evidence.push_back({"its text is a strict prefix of what the same request said alone",
                                  {record.request.id},
                                  {},
                                  "prefix"});
    claim.evidence.push_back({fmt::format("labelled {}, but {}", reason_word(record), ending.what),
                              {record.request.id},
                              {},
                              "ending"});
    if (hop && invents_ends(*hop))
        claim.evidence.push_back(
            {hop->name + " writes stop, [DONE] and usage after an upstream that ended without them",
             {record.request.id},
             {},
             hop->where});
    claim.next =
        "send the same request to the server's own port (--control): if its end differs, the label "
        "was made on the way";
    return claim;
}

MaybeClaim natural_end(const Record& record, const Context& context) {
    if (!looks_natural(record) || came_empty(record, context.baselines)) return std::nullopt;
    if (!record.tool_calls.empty() && !json_closed(record.tool_calls)) return std::nullopt;
    Confidence confidence = ending_of(record.text).open ? Confidence::kWeak : Confidence::kStrong;
    if (says_eos(record)) confidence = Confidence::kProven;
    Claim claim{Cause::kNaturalEnd, confidence};
    claim.evidence.push_back(
        {fmt::format("finish reason {}{}{}", reason_word(record),
                     record.end.terminator ? ", terminator seen" : ", no terminator",
                     says_eos(record) ? ", end-of-sequence token named" : ""),
         {record.request.id},
         {},
         "finish_reason"});
    return claim;
}

MaybeClaim numeric_divergence(const Record& record, const Context& context) {
    if (!looks_natural(record) && end_kind(record) != EndKind::kLength) return std::nullopt;
    const auto at = divergence(record, context.baselines);
    if (!at) return std::nullopt;
    Claim claim{Cause::kNumericDivergence, Confidence::kWeak};
    claim.decisive = false;
    claim.why_not = fmt::format(
        "the text leaves that of the same request alone at byte {}: other arithmetic at another "
        "batch size explains its length, not its end",
        *at);
    return claim;
}

}  // namespace fullstop::judge
