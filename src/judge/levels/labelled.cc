#include "judge/levels/labelled.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "judge/signs/end_kind.h"
#include "stats/evalues.h"

namespace fullstop::judge {
namespace {

bool bare_break(const Judged& loss) {
    return loss.conclusion.finding.cause == answer::Cause::kConnectionBroken &&
           loss.record->end.transport != answer::Transport::kRefused;
}

/// Called finished without a word of an answer. Alone it is no loss by itself: there it stands for
/// how often the server does so anyway.
bool is_empty(const Judged& answer) {
    return looks_natural(*answer.record) && answer.record->text.empty() &&
           answer.record->tool_calls.empty();
}

base::Duration began(const Judged* answer) {
    return answer->record->timeline.started.value_or(base::Duration{});
}

std::int64_t size(const std::vector<const Judged*>& answers) { return std::ssize(answers); }

double highest_pair_evalue(const std::vector<const Judged*>& answers,
                           const std::set<const Judged*>& events,
                           const std::vector<const Judged*>& before) {
    std::set<const answer::Record*> lost_alone;
    for (const Judged* loss : before) lost_alone.insert(loss->record);
    std::set<std::pair<std::string, std::int64_t>> seen;
    std::int64_t alone = 0, loaded = 0, pairs = 0;
    double highest = 1;
    for (const Judged* answer : answers) {
        const answer::Request& request = answer->record->request;
        if (answer->baselines.empty() || !seen.insert({request.prompt_id, request.seed}).second)
            continue;
        ++pairs;
        alone += lost_alone.contains(answer->baselines.front());
        loaded += events.contains(answer);
        highest = std::max(highest, stats::pair_evalue(alone, loaded, pairs));
    }
    return highest;
}

}  // namespace

std::vector<const Judged*> events_of(const std::vector<const Judged*>& losses) {
    std::vector<const Judged*> events;
    std::vector<const Judged*> wordless;
    for (const Judged* loss : losses)
        if (bare_break(*loss) && is_timed(*loss->record))
            wordless.push_back(loss);
        else
            events.push_back(loss);
    const auto ended = [](const Judged* loss) { return *loss->record->timeline.ended; };
    std::ranges::sort(wordless, {}, ended);
    for (std::size_t from = 0; from < wordless.size();) {
        std::size_t to = from + 1;
        while (to < wordless.size() &&
               ended(wordless[to]) - ended(wordless[to - 1]) <= kSimultaneous)
            ++to;
        events.push_back(*std::min_element(
            wordless.begin() + static_cast<std::ptrdiff_t>(from),
            wordless.begin() + static_cast<std::ptrdiff_t>(to),
            [](const Judged* a, const Judged* b) { return began(a) < began(b); }));
        from = to;
    }
    return events;
}

LabelledStream labelled_stream(const Level& level, const std::vector<const Judged*>& losses,
                               const Level* baseline, const std::vector<const Judged*>& before) {
    LabelledStream stream;
    const auto answers = in_planned_order(level);
    const auto events = events_of(losses);
    const std::set<const Judged*> lost(events.begin(), events.end());
    stream.events = {size(events), size(answers)};
    stream.bare =
        std::ranges::count_if(
            events, [](const Judged* loss) { return bare_break(*loss) || is_empty(*loss); }) *
            2 >
        size(events);
    std::vector<char> each;
    for (const Judged* answer : answers) each.push_back(lost.contains(answer) ? 1 : 0);
    stream.rate = stats::highest_rate_evalue(each);
    if (baseline == nullptr) return stream;
    auto lost_alone = before;
    if (std::ranges::any_of(losses, [](const Judged* loss) { return is_empty(*loss); }))
        for (const Judged& answer : baseline->answers)
            if (is_empty(answer) && !is_loss(answer)) lost_alone.push_back(&answer);
    stream.alone = {size(lost_alone), static_cast<std::int64_t>(telling_answers(*baseline))};
    stream.pair = highest_pair_evalue(answers, lost, lost_alone);
    stream.fisher = stats::fisher_greater({size(losses), size(answers)}, stream.alone);
    return stream;
}

}  // namespace fullstop::judge
