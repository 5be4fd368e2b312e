#include "judge/witnesses/witness.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "judge/signs/end_kind.h"
#include "judge/witnesses/prefix.h"
#include "stats/quantile.h"
#include "stats/tests_of_pairs.h"
#include "stats/tests_of_rates.h"

namespace fullstop::judge {
namespace {

/// Repeats that came out word for word the same are one observation, not several.
std::vector<const Judged*> distinct(const Level& level) {
    std::set<std::tuple<std::string, std::int64_t, std::string>> seen;
    std::vector<const Judged*> result;
    for (const Judged& answer : level.answers)
        if (looks_natural(*answer.record) && answer.record->tool_calls.empty() &&
            fate_of(answer) == Fate::kNatural &&
            seen.insert({answer.record->request.prompt_id, answer.record->request.seed,
                         answer.record->text})
                .second)
            result.push_back(&answer);
    return result;
}

Witness ending_witness(const Level& level, const Level& baseline) {
    Witness witness;
    witness.name = "open ending";
    for (const Judged* answer : distinct(level)) {
        ++witness.total;
        if (!answer->conclusion.finding.open_ending) continue;
        ++witness.events;
        witness.answers.push_back(answer);
    }
    for (const Judged* answer : distinct(baseline)) {
        ++witness.baseline_total;
        if (answer->conclusion.finding.open_ending) ++witness.baseline_events;
    }
    witness.p = stats::fisher_greater({witness.events, witness.total},
                                      {witness.baseline_events, witness.baseline_total});
    witness.text = fmt::format(
        "{} of {} answers that call themselves finished stop in the middle of a sentence, list or "
        "document ({} of {} alone)",
        witness.events, witness.total, witness.baseline_events, witness.baseline_total);
    return witness;
}

/// A strict prefix that ends closed may be one flipped EOS: it counts half.
Witness prefix_witness(const Level& level, const Level& baseline) {
    Witness witness;
    witness.name = "prefix";
    double weight = 0;
    for (const Judged& answer : level.answers) {
        if (!looks_natural(*answer.record) || !answer.conclusion.finding.prefix_of_baseline)
            continue;
        ++witness.total;
        if (!*answer.conclusion.finding.prefix_of_baseline) continue;
        weight += answer.conclusion.finding.open_ending ? 1 : 0.5;
        witness.answers.push_back(&answer);
    }
    for (const Judged& answer : baseline.answers)
        if (looks_natural(*answer.record) && repeats_itself(answer.baselines))
            ++witness.baseline_total;
    witness.events = static_cast<std::int64_t>(weight);
    witness.p = stats::fisher_greater({witness.events, witness.total}, {0, witness.baseline_total});
    witness.text = fmt::format(
        "{} of {} answers that call themselves finished are strict prefixes of what the same "
        "request said alone",
        witness.answers.size(), witness.total);
    return witness;
}

Witness coverage_witness(const Level& level, const Level& baseline) {
    Witness witness;
    witness.name = "coverage";
    std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> prompts;
    std::int64_t diverged = 0;
    for (const Judged* answer : distinct(level))
        if (answer->conclusion.finding.coverage)
            prompts[answer->record->request.prompt_id].first.push_back(
                *answer->conclusion.finding.coverage);
    for (const Judged* answer : distinct(baseline))
        if (answer->conclusion.finding.coverage)
            prompts[answer->record->request.prompt_id].second.push_back(
                *answer->conclusion.finding.coverage);
    std::vector<double> differences;
    for (const auto& [id, values] : prompts)
        if (!values.first.empty() && !values.second.empty())
            differences.push_back(stats::mean(values.first) - stats::mean(values.second));
    if (differences.size() < 2) return witness;
    const double drop = stats::mean(differences);
    for (const Judged* answer : distinct(level)) {
        if (!answer->conclusion.finding.coverage) continue;
        const auto& alone = prompts[answer->record->request.prompt_id].second;
        if (alone.empty() || *answer->conclusion.finding.coverage >= stats::mean(alone) - 0.1)
            continue;
        witness.answers.push_back(answer);
        if (divergence(*answer->record, answer->baselines)) ++diverged;
    }
    witness.events = static_cast<std::int64_t>(witness.answers.size());
    witness.total = static_cast<std::int64_t>(distinct(level).size());
    witness.text = fmt::format(
        "answers that call themselves finished cover {:.0f} % less of what was asked for than "
        "alone, over {} prompts",
        -100 * drop, differences.size());
    // Texts that left the baseline before they ended said something else; that they cover less is
    // not a sign of a cut.
    const bool other_texts = diverged * 2 > witness.events;
    witness.p = drop > -0.1 || other_texts ? 1 : stats::sign_flip(differences, 1) / 2;
    return witness;
}

}  // namespace

std::vector<Witness> witnesses(const Level& level, const Level& baseline) {
    std::vector<Witness> result;
    result.push_back(prefix_witness(level, baseline));
    result.push_back(ending_witness(level, baseline));
    result.push_back(coverage_witness(level, baseline));
    return result;
}

}  // namespace fullstop::judge
