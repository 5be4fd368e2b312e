#include "judge/witnesses/quiet.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "judge/signs/end_kind.h"
#include "judge/witnesses/coverage.h"
#include "judge/witnesses/ending.h"
#include "stats/evalues.h"

namespace fullstop::judge {
namespace {

using answer::Record;

/// What the sides of a pair are worth; fixed before any run, as the tests ask for.
constexpr double kTorn = 1.8, kOpen = 0.2, kTail = 1.8;
/// An open ending counts whole where the lengths differ by half.
constexpr double kFar = 0.4;

std::string whole(const Record& record) { return record.reasoning + record.text; }

bool said_finished(const Record& record) {
    return looks_natural(record) && record.tool_calls.empty() && !record.text.empty();
}

/// One comparison: an answer under load and one of the same request alone.
struct Pair {
    const Judged* loaded = nullptr;
    const Record* alone = nullptr;
    double score = 0;
    bool scored = false;     ///< both ended by themselves
    bool different = false;  ///< takes part in the flip test
    bool first = false;      ///< the loaded one stopped first on the common path
    bool last = false;       ///< the one alone did
    bool torn = false, tail = false, left_path = false;
};

bool strict_prefix(const std::string& one, const std::string& other) {
    return one.size() < other.size() && other.starts_with(one);
}

Pair compare(const Judged& loaded, const Record& alone) {
    Pair pair{.loaded = &loaded, .alone = &alone};
    const Record& record = *loaded.record;
    const std::string here = whole(record), there = whole(alone);
    const bool first = strict_prefix(here, there), last = strict_prefix(there, here);
    const bool open_here = ending_of(record.text).open, open_there = ending_of(alone.text).open;
    pair.different = here != there;
    pair.first = first;
    pair.last = last;
    pair.left_path = pair.different && !first && !last;
    pair.torn = first && open_here;
    pair.scored = said_finished(alone);
    if (!pair.scored) return pair;
    double score = kTorn * (pair.torn ? 1 : last && open_there ? -1 : 0);
    const double ratio =
        std::abs(std::log(static_cast<double>(here.size()) /
                          static_cast<double>(std::max<std::size_t>(1, there.size()))));
    score += kOpen * (static_cast<int>(open_here) - static_cast<int>(open_there)) *
             std::min(1.0, ratio / kFar);
    if (loaded.prompt != nullptr) {
        const int tail = missing_tail(record.text, alone.text, loaded.prompt->check);
        pair.tail = tail > 0;
        score += kTail * tail;
    }
    pair.score = std::tanh(score);
    return pair;
}

/// A baseline that something equalled is not the odd one.
bool confirmed(const Judged& answer, const Record& alone, const Level& level) {
    const std::string text = whole(alone);
    const auto equal = [&](const Record& other) {
        return &other != &alone && whole(other) == text;
    };
    return std::ranges::any_of(answer.baselines, [&](const Record* r) { return equal(*r); }) ||
           std::ranges::any_of(level.answers, [&](const Judged& other) {
               return other.record->request.prompt_id == answer.record->request.prompt_id &&
                      other.record->request.seed == answer.record->request.seed &&
                      equal(*other.record);
           });
}

/// The first loaded answer of a pair always counts; further ones only in the flip test, each text
/// once, and only where the baseline is confirmed.
std::vector<Pair> pairs_of(const QuietSource& source) {
    std::vector<Pair> pairs;
    std::map<std::pair<std::string, std::int64_t>, std::set<std::string>> seen;
    std::size_t nameless = 0;
    for (const Judged* answer : in_planned_order(*source.level)) {
        if (!said_finished(*answer->record) || answer->baselines.size() <= source.baseline)
            continue;
        const Record& alone = *answer->baselines[source.baseline];
        const bool limited = end_kind(alone) == EndKind::kLength && !alone.text.empty();
        if (!said_finished(alone) && !limited) continue;
        const answer::Request& request = answer->record->request;
        // Captures carry no prompt id: each is a pair of its own.
        const std::string id =
            request.prompt_id.empty() ? std::to_string(nameless++) : request.prompt_id;
        auto& texts = seen[{id, request.seed}];
        const bool again = !texts.empty();
        if (!texts.insert(whole(*answer->record)).second) continue;
        if (again && !confirmed(*answer, alone, *source.level)) continue;
        pairs.push_back(compare(*answer, alone));
        if (again) pairs.back().scored = false;
    }
    return pairs;
}

/// Natural-looking ends in one instant are one event.
std::vector<std::vector<Pair>> events_of(const std::vector<Pair>& pairs) {
    std::vector<std::vector<Pair>> events;
    const auto ended = [](const Pair& pair) { return pair.loaded->record->timeline.ended; };
    for (const Pair& pair : pairs) {
        const auto same = std::ranges::find_if(events, [&](const std::vector<Pair>& event) {
            if (!is_timed(*pair.loaded->record) || !is_timed(*event.front().loaded->record))
                return false;
            const base::Duration away = *ended(event.front()) - *ended(pair);
            return away <= kSimultaneous && away >= -kSimultaneous;
        });
        if (same == events.end())
            events.push_back({pair});
        else
            same->push_back(pair);
    }
    return events;
}

std::optional<double> mean_score(const std::vector<Pair>& event) {
    double sum = 0;
    int count = 0;
    for (const Pair& pair : event)
        if (pair.scored) {
            sum += pair.score;
            ++count;
        }
    return count == 0 ? std::nullopt : std::optional(sum / count);
}

void count_flip(QuietStream& stream, const std::vector<Pair>& event) {
    const auto different = std::ranges::count_if(event, &Pair::different);
    if (different == 0) return;
    // Several torn ones that a server calls finished in one moment are no blip of a network: two.
    const auto torn = std::min<std::ptrdiff_t>(2, std::ranges::count_if(event, &Pair::torn));
    const bool first = std::ranges::count_if(event, &Pair::first) * 2 > different;
    stream.alone_first += std::ranges::count_if(event, &Pair::last) * 2 > different;
    stream.different += first ? std::max<std::ptrdiff_t>(1, torn) : 1;
    if (first) stream.stopped_first += std::max<std::ptrdiff_t>(1, torn);
    stream.flip =
        std::max(stream.flip, stats::flip_evalue({stream.stopped_first, stream.different}));
}

}  // namespace

QuietStream quiet_stream(const std::vector<QuietSource>& sources) {
    QuietStream stream;
    std::vector<double> scores;
    for (const QuietSource& source : sources) {
        for (const std::vector<Pair>& event : events_of(pairs_of(source))) {
            if (const auto score = mean_score(event)) scores.push_back(*score);
            count_flip(stream, event);
            for (const Pair& pair : event) {
                stream.pairs += pair.scored;
                stream.torn += pair.torn;
                stream.left_path += pair.left_path;
                if (pair.first || pair.tail) stream.cut.push_back(pair.loaded);
            }
        }
    }
    stream.score = stats::highest_score_evalue(scores);
    return stream;
}

}  // namespace fullstop::judge
