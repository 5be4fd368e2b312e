#include "judge/levels/quiet_cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "judge/signs/end_kind.h"
#include "judge/signs/words.h"
#include "judge/witnesses/coverage.h"
#include "judge/witnesses/quiet.h"

namespace fullstop::judge {
namespace {

using answer::Cause;

/// Both highest levels together, each with a baseline of its own.
constexpr double kCalledTogether = 400;
/// What each of the two must bring to it by itself.
constexpr double kShare = 20;

/// Texts that left their baseline and leave out facts may just be other texts: shorter ones bring
/// the score up without a single torn answer.
bool other_texts(const QuietStream& stream) {
    return stream.flip < kCalled && stream.torn * 10 <= stream.pairs &&
           stream.left_path * 2 > stream.pairs;
}

/// A server that stops early for one user as well is no matter of load: then both stop first.
bool alone_as_well(const QuietStream& stream) {
    return stream.score < kCalled && stream.alone_first * 3 > stream.stopped_first;
}

QuietTest test_of(const QuietStream& stream) {
    return {.score = stream.score,
            .flip = stream.flip,
            .pairs = stream.pairs,
            .torn = stream.torn,
            .stopped_first = stream.stopped_first,
            .different = stream.different,
            .cut = static_cast<std::int64_t>(stream.cut.size()),
            .called = false,
            .other_texts = other_texts(stream)};
}

constexpr std::int64_t kLeastLacking = 6;
constexpr std::size_t kLeastPrompts = 3;

bool lacks_its_end(const Judged& answer) {
    return answer.prompt != nullptr && answer.conclusion.finding.open_ending &&
           unfinished(answer.record->text, answer.prompt->check);
}

std::string how(const Judged& answer) {
    const answer::Record& record = *answer.record;
    const bool prefix = std::ranges::any_of(answer.baselines, [&](const answer::Record* alone) {
        return alone->text.size() > record.text.size() && alone->text.starts_with(record.text);
    });
    if (prefix)
        return fmt::format("labelled {} after \"...{}\"; alone the same request went on from there",
                           reason_word(record), tail(record.text, 40));
    return fmt::format(
        "labelled {} after \"...{}\"; the end of what was asked for is missing, and "
        "alone it was there",
        reason_word(record), tail(record.text, 40));
}

void name_cut(Judged& answer) {
    Finding& finding = answer.conclusion.finding;
    if (finding.cause != Cause::kNaturalEnd && finding.cause != Cause::kUnexplained) return;
    if (finding.cause == Cause::kNaturalEnd) {
        finding.alternatives.push_back(
            {Cause::kNaturalEnd, "too many answers of this level end before those alone do"});
        finding.evidence.clear();
    }
    finding.cause = Cause::kUnexplained;
    finding.layer = answer::Layer::kUnknown;
    finding.confidence = answer::Confidence::kUnresolved;
    finding.shortened = true;
    finding.evidence.insert(finding.evidence.begin(),
                            {how(answer), {answer.record->request.id}, {}, "text"});
    finding.next =
        "send the same request to the server's own port (--control), and look for a limit, a "
        "time-out or an error in the server's log at the moment of these ends";
}

struct Loaded {
    Level* level = nullptr;
    QuietStream stream;
};

void call(std::vector<Loaded>& levels, const QuietStream& together) {
    const auto called = [](const Loaded& one, double least) {
        return one.stream.evalue() >= least && !other_texts(one.stream) &&
               !alone_as_well(one.stream);
    };
    auto top = levels.rbegin();
    if (called(*top, kCalled)) {
        top->level->quiet->called = true;
    } else if (together.evalue() >= kCalledTogether && !other_texts(together) &&
               !alone_as_well(together)) {
        for (const auto& one : {top, std::next(top)})
            if (called(*one, kShare)) one->level->quiet->called = true;
    }
    for (Loaded& one : levels)
        if (called(one, kCalledAlone)) one.level->quiet->called = true;
    const bool any =
        std::ranges::any_of(levels, [](const Loaded& one) { return one.level->quiet->called; });
    for (Loaded& one : levels)
        if (any && called(one, kBegins)) one.level->quiet->called = true;
}

}  // namespace

void find_cuts_alone(ArmAnswers& arm) {
    const Level* baseline = arm.baseline();
    if (baseline == nullptr) return;
    std::int64_t finished = 0, lacking = 0;
    std::set<std::string> prompts;
    for (const Judged& answer : baseline->answers) {
        if (answer.conclusion.finding.cause != Cause::kNaturalEnd) continue;
        ++finished;
        if (!lacks_its_end(answer)) continue;
        ++lacking;
        prompts.insert(answer.record->request.prompt_id);
    }
    if (lacking < kLeastLacking || lacking * 2 < finished || prompts.size() < kLeastPrompts) return;
    for (Level& level : arm.levels)
        for (Judged& answer : level.answers) {
            Finding& finding = answer.conclusion.finding;
            if (finding.cause != Cause::kNaturalEnd || !lacks_its_end(answer)) continue;
            finding.cause = Cause::kDefaultTokenLimit;
            finding.layer = answer::Layer::kSettings;
            finding.confidence = answer::Confidence::kWeak;
            finding.shortened = true;
            finding.evidence = {
                {fmt::format("labelled {} after \"...{}\": open, and the end of what was asked for "
                             "is missing, as in {} of {} answers to one user alone",
                             reason_word(*answer.record), tail(answer.record->text, 40), lacking,
                             finished),
                 {answer.record->request.id},
                 {},
                 "text"}};
            finding.next =
                "send max_tokens with the request and compare; look for a limit in the server's "
                "settings that answers as stop";
        }
}

void find_quiet_cuts(ArmAnswers& arm) {
    std::vector<Loaded> levels;
    for (Level& level : arm.levels) {
        if (level.concurrency == 1) continue;
        levels.push_back({&level, quiet_stream({{&level, 0}})});
        level.quiet = test_of(levels.back().stream);
    }
    if (levels.empty()) return;
    QuietStream together;
    if (levels.size() > 1)
        together = quiet_stream({{levels.back().level, 0}, {levels[levels.size() - 2].level, 1}});
    call(levels, together);
    for (Loaded& one : levels) {
        if (!one.level->quiet->called) continue;
        for (Judged& answer : one.level->answers)
            if (std::ranges::find(one.stream.cut, &answer) != one.stream.cut.end())
                name_cut(answer);
    }
}

}  // namespace fullstop::judge
