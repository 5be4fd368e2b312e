// How often is an honest server accused? Over four hundred whole runs in which load cuts nothing,
// each with the noise of one kind of machine, server or text. Prints a row for each kind.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "judge/verdict.h"
#include "simulator/plants/fault.h"
#include "simulator/plants/scenario.h"
#include "simulator/plants/test_prompts.h"

namespace fullstop::simulator {
namespace {

using judge::Verdict;

constexpr int kRunsOfAKind = 40;
constexpr int kMostFalseDefects = 4;  ///< of all: a hundredth

struct Kind {
    std::string_view name;
    /// `step` counts the runs of the kind.
    std::function<void(VirtualRun& run, int step)> stage;
    bool breaks_alone =
        false;  ///< answers are lost for one user as well; it is no false word to say so
    /// As a plant's known_miss: false defects, or runs left undecided, as long as they are.
    int known_misses = 0;
};

/// A connection in twenty breaks, whatever the load.
void break_one_in_twenty(VirtualRun& run) {
    Fault fault;
    fault.share = 0.05;
    fault.ending = silent_ending(BodyEnd::kReset);
    run.deployed.plants.push_back(simulator::fault(std::move(fault)));
}

std::vector<Kind> kinds() {
    const auto script = [](VirtualRun& run) -> ServerScript& { return run.deployed.script; };
    return {
        {"open endings, 10 to 30 %",
         [=](auto& run, int step) { script(run).lengths.open_share = 0.1 + 0.2 * step / 40; }},
        {"texts diverge",
         [=](auto& run, int step) {
             script(run).variance.at_load = 0.25 * (1 + step % 4);
             script(run).variance.alone = step % 3 == 0 ? 0.5 : 0;
             script(run).variance.spread = step % 2 == 0 ? 0.4 : 0.8;
         }},
        {"answers of one length",
         [=](auto& run, int step) {
             script(run).lengths = {150 + step, 150 + step, 0.02, 0.15};
             script(run).timing.jitter = 0.02;
         }},
        {"an honest gateway before it",
         [=](auto& run, int step) {
             run.control.emplace();
             run.control->script = script(run);
             script(run).headers.emplace_back("Server", "nginx/1.22.1");
             script(run).noise.hiccups = 0.02;
             script(run).variance.at_load = 0.2 * (step % 5);
         }},
        {"warm-up three times slower", [=](auto& run, int) { script(run).noise.cold = 3; }},
        {"5 % resets at every level", [](auto& run, int) { break_one_in_twenty(run); }, true},
        {"slower and slower",
         [=](auto& run, int step) { script(run).noise.drift_per_minute = 0.1 * (1 + step % 10); },
         false, 0},
        {"prompt cache, few slots",
         [=](auto& run, int step) {
             script(run).noise.cached_prefill = 0.05;
             script(run).slots = 2 + step % 3;
             script(run).timing.prefill_per_token = std::chrono::milliseconds(4);
         }},
        {"no usage, four tokens an event",
         [=](auto& run, int step) {
             script(run).tells = {
                 .usage = false, .timings = false, .props = false, .metrics = false};
             script(run).plays = Plays::kUnknown;
             if (step % 2 == 0) run.experiment.max_tokens = base::Tokens{90};
         },
         false, 4},
        {"busy machine",
         [=](auto& run, int step) {
             script(run).noise.hiccups = 0.01 * (1 + step % 5);
             script(run).timing.itl_growth = 1;
         }},
        {"all of these together",
         [=](auto& run, int step) {
             auto& all = script(run);
             all.variance = {.at_load = 0.5, .alone = step % 2 == 0 ? 0.2 : 0, .spread = 0.6};
             all.noise.cold = 3;
             all.noise.drift_per_minute = 0.1;
             all.noise.cached_prefill = 0.1;
             all.noise.hiccups = 0.02;
             all.lengths.open_share = 0.3;
             if (step % 4 == 1) all.thinking_tokens = 25;
             if (step % 4 == 2) run.experiment.max_tokens = base::Tokens{90};
             if (step % 4 == 3) run.experiment.stream = false;
         }},
    };
}

VirtualRun honest(const Kind& kind, std::size_t number, int step) {
    auto run = honest_run(eight_prompts(), 9000 + 100 * number + static_cast<std::uint64_t>(step));
    auto& script = run.deployed.script;
    constexpr Plays kPlays[] = {Plays::kLlamaServer, Plays::kVllm, Plays::kLocalAi, Plays::kUnknown,
                                Plays::kOllama};
    script.plays = kPlays[step % 5];
    script.lengths.open_share = 0.15;
    script.noise.end_jitter = std::chrono::milliseconds(40);
    script.noise.any_order = true;
    script.noise.most_tokens_an_event = 1 + step % 4;
    kind.stage(run, step);
    return run;
}

struct Tally {
    std::map<std::string_view, int> verdicts;
    int false_defects = 0, undecided = 0;
    std::string accused;
};

Tally judged(const Kind& kind, std::size_t number) {
    Tally tally;
    for (int step = 0; step < kRunsOfAKind; ++step) {
        auto played = run_probe(honest(kind, number, step));
        EXPECT_EQ(played.outcome, Outcome::kDone);
        const auto said = judge::judge(played.run).verdict;
        ++tally.verdicts[judge::to_string(said.value)];
        if (kind.breaks_alone &&
            (said.from_concurrency == 1 || said.value == Verdict::kInconclusive))
            continue;
        tally.undecided += said.value == Verdict::kInconclusive;
        const bool defect = said.value == Verdict::kServingDefect || said.value == Verdict::kPolicy;
        tally.false_defects += defect;
        if (defect || said.value == Verdict::kInconclusive)
            tally.accused += fmt::format("  {} {}: {}\n", kind.name, step, said.headline);
    }
    return tally;
}

TEST(HonestRuns, AreNeitherAccusedNorLeftUndecidedWhateverTheNoise) {
    int false_defects = 0, undecided = 0, known = 0, runs = 0;
    std::string accused, mended;
    for (const auto& kind : kinds()) {
        const auto tally = judged(kind, static_cast<std::size_t>(runs / kRunsOfAKind));
        std::string row;
        for (const auto& [verdict, count] : tally.verdicts)
            row += fmt::format(" {:>3} {}", count, verdict);
        fmt::print("{:<32}{}\n", kind.name, row);
        runs += kRunsOfAKind;
        accused += tally.accused;
        const int wrong = tally.false_defects + tally.undecided;
        if (kind.known_misses > 0) {
            known += wrong;
            if (wrong == 0) mended += fmt::format("{}; ", kind.name);
            EXPECT_LE(wrong, kind.known_misses) << kind.name;
            continue;
        }
        false_defects += tally.false_defects;
        undecided += tally.undecided;
    }
    fmt::print("honest runs: {} false defects and {} undecided of {}, and {} known misses\n{}",
               false_defects, undecided, runs, known, accused);
    EXPECT_LE(false_defects, kMostFalseDefects);
    EXPECT_LE(undecided, kMostFalseDefects);
    EXPECT_EQ(mended, "") << "these kinds are judged right now: take their known misses out";
}

}  // namespace
}  // namespace fullstop::simulator
