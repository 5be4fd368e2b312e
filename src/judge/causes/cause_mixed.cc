// answers_mixed: the text is not this request's own. Needs: runs of words that only the answer to
// another prompt had alone, or an end that is one piece over and over in several answers where no
// answer alone has one. Refuted by: the same runs in its own answers alone. Recommends: fewer
// answers at once, and the server's version; nothing the client sets mends it.
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
/// Answers of one level that end in a loop before load is suspected.
constexpr int kLoops = 3;

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

/// The end of the text is one short piece over and over.
bool loops_at_its_end(std::string_view text) {
    constexpr std::size_t kTail = 64, kLongestPiece = 12;
    if (text.size() < kTail) return false;
    const std::string_view tail = text.substr(text.size() - kTail);
    for (std::size_t piece = 1; piece <= kLongestPiece; ++piece)
        if (tail.substr(piece) == tail.substr(0, kTail - piece)) return true;
    return false;
}

/// Small models fall into loops by themselves now and then: several must, and none alone.
bool only_load_loops(const Context& context) {
    const auto loops = [](const Record* one) { return loops_at_its_end(one->text); };
    return std::ranges::count_if(context.siblings, loops) >= kLoops &&
           std::ranges::none_of(context.alone, loops);
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
    const bool broken = loops_at_its_end(record.text) && only_load_loops(context);
    if (foreign < kRuns && !broken) return std::nullopt;
    Claim claim{Cause::kAnswersMixed, foreign >= kRuns ? Confidence::kStrong : Confidence::kWeak};
    claim.evidence.push_back(
        {foreign >= kRuns
             ? fmt::format("{} runs of {} words stand in the answer to another prompt and in none "
                           "to its own: \"{}\"",
                           foreign, kRun, one_line(shown, 80))
             : std::string(
                   "its end is one piece over and over; the same request alone has no such end"),
         {record.request.id},
         static_cast<double>(foreign),
         "text"});
    claim.next =
        "run fewer answers at once, and update the server: it confuses the state of answers "
        "that it computes together";
    return claim;
}

}  // namespace fullstop::judge
