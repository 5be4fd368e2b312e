// Does judge name what was planted, and stay silent when nothing was? Whole probe runs in virtual
// time: every scenario at every onset, and unplanted runs of honest servers whose lengths vary
// naturally. Prints both rates and every miss.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "judge/verdict.h"
#include "judge/witnesses/coverage.h"
#include "probe/schedule.h"
#include "simulator/plants/scenario.h"
#include "simulator/plants/test_prompts.h"
#include "simulator/server/scripted_model.h"

namespace fullstop::simulator {
namespace {

using judge::Verdict;

struct Played {
    VirtualResult result;
    judge::RunJudgement judgement;
};

Played play(VirtualRun run) {
    Played played{run_probe(std::move(run)), {}};
    played.judgement = judge::judge(played.result.run);
    return played;
}

std::string concluded(const judge::Judgement& verdict) {
    return fmt::format("{} {} {} {} from {}", judge::to_string(verdict.value),
                       verdict.cause ? answer::to_string(*verdict.cause) : "-",
                       verdict.layer ? answer::to_string(*verdict.layer) : "-",
                       answer::to_string(verdict.confidence), verdict.from_concurrency.value_or(0));
}

/// How the records were judged, most frequent first, for the table of misses.
std::string record_causes(const Played& played) {
    std::map<std::string, int> counts;
    for (const auto& record : played.result.run.records)
        if (record.request.arm == "deployed")
            ++counts[fmt::format(
                "{}@{}", answer::to_string(played.judgement.findings.at(record.request.id).cause),
                record.request.concurrency)];
    std::string text;
    for (const auto& [name, count] : counts)
        if (!name.starts_with("natural_end")) text += fmt::format(" {}x{}", name, count);
    return text;
}

bool among(const auto& allowed, const auto& value) {
    return std::ranges::find(allowed, value) != allowed.end();
}

/// A pause ends nothing: it stands beside the cause of the answer's end.
bool carries(const judge::Finding& finding, answer::Cause cause) {
    return finding.cause == cause ||
           std::ranges::any_of(finding.alternatives, [&](const judge::Alternative& other) {
               return other.cause == cause;
           });
}

/// Share of the deployed arm's answers at `level` that carry `cause`.
double share_of(const Played& played, answer::Cause cause, int level) {
    double all = 0, found = 0;
    for (const auto& record : played.result.run.records) {
        if (record.request.arm != "deployed" || record.request.concurrency != level) continue;
        ++all;
        found += carries(played.judgement.findings.at(record.request.id), cause);
    }
    return all > 0 ? found / all : 0;
}

/// Empty when judge said what was planted; else what it missed.
std::string miss(const Expected& expected, int from, const Played& played) {
    const auto& said = played.judgement.verdict;
    std::string wrong;
    if (!among(expected.verdicts, said.value)) wrong += " verdict";
    if (expected.of_answers && share_of(played, *expected.of_answers, from) < 0.2)
        wrong += " answers";
    if (expected.causes.empty()) return wrong;
    if (!said.cause || !among(expected.causes, *said.cause)) wrong += " cause";
    if (!said.layer || !among(expected.layers, *said.layer)) wrong += " layer";
    if (said.from_concurrency != from) wrong += " from";
    return wrong;
}

TEST(PlantedCauses, AreNamedWithCauseLayerVerdictAndTheConcurrencyTheyStartAt) {
    int runs = 0, hits = 0;
    std::string misses;
    std::uint64_t events = 0, answers = 0;
    for (const auto& scenario : planted_causes()) {
        for (const int from : scenario.onsets) {
            const std::uint64_t seed = 1000 + static_cast<std::uint64_t>(++runs);
            base::Random random(seed);
            auto run = honest_run(eight_prompts(), seed);
            scenario.stage(run, from, random);
            const auto played = play(std::move(run));
            events += played.result.events;
            answers += played.result.run.records.size();
            auto wrong = miss(scenario.expected, from, played);
            if (played.result.outcome != Outcome::kDone)
                wrong += fmt::format(" run: {}", to_string(played.result.outcome));
            hits += wrong.empty();
            if (wrong.empty()) continue;
            misses +=
                fmt::format("  {} (from {}, seed {}): wrong{}\n    said: {}: {}\n    answers:{}\n",
                            scenario.name, from, seed, wrong, concluded(played.judgement.verdict),
                            played.judgement.verdict.headline, record_causes(played));
            for (const auto& note : played.result.run.notes)
                misses += fmt::format("    note: {}\n", note);
        }
    }
    fmt::print("planted causes: {} of {} hit ({} scenarios, {} answers, {} events)\n{}", hits, runs,
               planted_causes().size(), answers, events, misses);
    // Reached when this was written: 133 of 133, and 664 of 665 with five other seed bases (a pause
    // that hit too few answers of a level of two). One miss is left to changes elsewhere that move
    // the seeds.
    EXPECT_GE(hits, runs - 1);
}

/// Honest servers of many kinds: nothing is planted, but answers vary, queue and slow down.
VirtualRun unplanted(int number, const std::vector<answer::Prompt>& prompts) {
    auto run = honest_run(prompts, 5000 + static_cast<std::uint64_t>(number));
    auto& script = run.deployed.script;
    constexpr double kVariance[] = {0, 0.1, 0.3, 0.6, 1.0};
    constexpr Plays kPlays[] = {Plays::kLlamaServer, Plays::kVllm, Plays::kOllama, Plays::kLocalAi,
                                Plays::kTabby};
    script.variance.at_load = kVariance[number % 5];
    script.variance.alone = number % 7 == 3 ? 0.3 : 0;
    script.variance.spread = number % 2 == 0 ? 0.4 : 0.8;
    script.plays = kPlays[number % 5 == 0 ? number / 5 % 5 : number % 4];
    if (script.plays == Plays::kOllama && number % 2 == 1) run.api = answer::Api::kOllama;
    script.slots = number % 3 == 0 ? 2 : 8;
    script.timing.itl_growth = number % 4 == 0 ? 1.0 : 0.2;
    script.timing.itl = std::chrono::milliseconds(number % 6 == 0 ? 150 : 12);
    if (number % 8 == 5) script.thinking_tokens = 25;
    if (number % 10 == 9)
        script.tells = {.usage = false, .timings = false, .props = false, .metrics = false};
    if (number % 12 == 7)
        run.experiment.max_tokens =
            base::Tokens{90};  // half of the answers end at the limit that was asked for
    if (number % 12 == 11) run.experiment.stream = false;
    return run;
}

TEST(UnplantedRuns, AreNotCalledShortenedHoweverLengthsVary) {
    constexpr int kRuns = 48;
    int false_alarms = 0, false_proofs = 0, undecided = 0;
    std::string table;
    std::map<std::string_view, int> verdicts;
    for (int number = 0; number < kRuns; ++number) {
        const auto played = play(unplanted(number, eight_prompts()));
        ASSERT_EQ(played.result.outcome, Outcome::kDone);
        const auto& verdict = played.judgement.verdict;
        ++verdicts[judge::to_string(verdict.value)];
        const bool alarm =
            verdict.value == Verdict::kServingDefect || verdict.value == Verdict::kPolicy;
        const auto proofs = std::ranges::count_if(played.judgement.findings, [](const auto& entry) {
            return entry.second.confidence == answer::Confidence::kProven &&
                   entry.second.shortened.value_or(false);
        });
        false_alarms += alarm;
        false_proofs += static_cast<int>(proofs);
        undecided += verdict.value == Verdict::kInconclusive;
        if (alarm || proofs > 0 || verdict.value == Verdict::kInconclusive)
            table += fmt::format("  unplanted {}: {}: {}\n    answers:{}\n", number,
                                 concluded(verdict), verdict.headline, record_causes(played));
    }
    fmt::print(
        "unplanted runs: {} of {} false alarms, {} answers falsely proven shortened, {} "
        "inconclusive;",
        false_alarms, kRuns, false_proofs, undecided);
    for (const auto& [name, count] : verdicts) fmt::print(" {} {}", count, name);
    fmt::print("\n{}", table);
    EXPECT_EQ(false_alarms, 0);
    EXPECT_EQ(false_proofs, 0);
}

TEST(VirtualProbe, TheSameSeedGivesTheSameRun) {
    const auto lines = [](std::uint64_t seed) {
        auto run = honest_run(eight_prompts(), seed);
        run.deployed.script.variance.at_load = 0.5;
        std::vector<std::string> all;
        for (const auto& record : run_probe(std::move(run)).run.records)
            all.push_back(fmt::format("{} {} {} {}", record.request.id, record.text,
                                      record.timeline.ended->count(), record.capture.bytes.size()));
        return all;
    };
    EXPECT_EQ(lines(4), lines(4));
    EXPECT_NE(lines(4), lines(5));
}

TEST(VirtualProbe, AnswersTheBuiltInPromptsCompletely) {
    const auto prompts = probe::builtin_prompts();
    ASSERT_FALSE(prompts.empty());
    const std::map<std::string, std::string> samples = {
        {"code", "```python\ndef same(n):\n    return n\n```"}};
    const ScriptedModel model(prompts, 1, {}, samples);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        const auto text = model.alone(i, 1).joined();
        const auto coverage = judge::coverage_of(text, prompts[i].check);
        EXPECT_DOUBLE_EQ(coverage.value_or(1), 1) << prompts[i].id << ": " << text;
    }
}

}  // namespace
}  // namespace fullstop::simulator
