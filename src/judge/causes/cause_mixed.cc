// answers_mixed: the text is not this request's own. Needs: runs of words that only the answer to
// another prompt had alone, or a tail that repeats one word for ever where the same request alone
// does not. Refuted by: the same runs in its own answers alone. Recommends: fewer answers at once,
// and the server's version; nothing the client sets mends it.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "judge/causes/causes.h"
#include "judge/signs/words.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

/// Words in a run: chance and common phrases do not share so many.
constexpr std::size_t kRun = 8;
constexpr int kRuns = 2;
constexpr std::size_t kSameWords = 12;

/// Pieces of `text` of kRun words each, as they stand there.
std::vector<std::string_view> runs_of(std::string_view text) {
    std::vector<std::string_view> runs;
    std::size_t begin = 0, words = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != ' ') continue;
        if (++words < kRun) continue;
        runs.push_back(text.substr(begin, at - begin));
        begin = at + 1;
        words = 0;
    }
    return runs;
}

bool in_any(std::string_view run, const std::vector<const Record*>& records) {
    return std::ranges::any_of(records,
                               [&](const Record* record) { return contains(record->text, run); });
}

/// The last words of the text are one word.
bool one_word_for_ever(std::string_view text) {
    std::string_view word;
    for (std::size_t same = 0; same < kSameWords; ++same) {
        const std::size_t end = text.find_last_not_of(' ');
        if (end == std::string_view::npos) return false;
        const std::size_t space = text.find_last_of(' ', end);
        if (space == std::string_view::npos) return false;
        const std::string_view last = text.substr(space + 1, end - space);
        if (same > 0 && last != word) return false;
        word = last;
        text = text.substr(0, space);
    }
    return true;
}

}  // namespace

MaybeClaim answers_mixed(const Record& record, const Context& context) {
    if (record.request.concurrency < 2 || record.end.error || context.baselines.empty())
        return std::nullopt;
    std::vector<const Record*> others;
    for (const Record* alone : context.alone)
        if (alone->request.prompt_id != record.request.prompt_id) others.push_back(alone);
    int foreign = 0;
    std::string_view shown;
    for (const std::string_view run : runs_of(record.text)) {
        if (!in_any(run, others) || in_any(run, context.baselines)) continue;
        if (foreign++ == 0) shown = run;
    }
    const bool broken = one_word_for_ever(record.text) &&
                        std::ranges::none_of(context.baselines, [](const Record* alone) {
                            return one_word_for_ever(alone->text);
                        });
    if (foreign < kRuns && !broken) return std::nullopt;
    Claim claim{Cause::kAnswersMixed, foreign >= kRuns ? Confidence::kStrong : Confidence::kWeak};
    claim.evidence.push_back(
        {foreign >= kRuns
             ? fmt::format("{} runs of {} words stand in the answer to another prompt and in none "
                           "to its own: \"{}\"",
                           foreign, kRun, one_line(shown, 80))
             : std::string("its end repeats one word for ever; the same request alone does not"),
         {record.request.id},
         static_cast<double>(foreign),
         "text"});
    claim.next =
        "run fewer answers at once, and update the server: it confuses the state of answers "
        "that it computes together";
    return claim;
}

}  // namespace fullstop::judge
