// Planted causes must be named, unplanted runs must not be accused.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include "judge/test_run.h"
#include "judge/verdict.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Layer;
using testing::HasSubstr;

answer::ServerFacts llama_server(std::int64_t window, std::int64_t slots, bool shared) {
    answer::ServerFacts facts;
    facts.name = "llama-server";
    facts.window = answer::Fact<base::Tokens>::reported({window}, "/props n_ctx");
    facts.slots = answer::Fact<std::int64_t>::reported(slots, "/props total_slots");
    facts.pool =
        answer::Fact<base::Tokens>::derived({shared ? window : window * slots}, "/props n_ctx");
    facts.shared_pool = answer::Fact<bool>::derived(shared, "/props");
    return facts;
}

/// llama-server with one pool for all slots: when the live answers fill it, every one of them gets
/// the error.
void kill_when_pool_is_full(answer::Run& run, std::int64_t pool) {
    for (const int level : {2, 4, 8}) {
        std::vector<answer::Record*> records;
        for (answer::Record& record : run.records)
            if (record.request.concurrency == level) records.push_back(&record);
        for (std::size_t i = 0; i < records.size(); i += static_cast<std::size_t>(level)) {
            const auto wave = std::vector<answer::Record*>(
                records.begin() + static_cast<std::ptrdiff_t>(i),
                records.begin() + static_cast<std::ptrdiff_t>(i) + level);
            std::int64_t step = 0, held = 0;
            const base::Duration start = *wave.front()->timeline.sent;
            for (; held < pool && step < 512; ++step) {
                held = 0;
                for (const auto* record : wave)
                    if (step <= (*record->output_tokens).count)
                        held += (*record->prompt_tokens).count +
                                std::min(step, (*record->output_tokens).count);
            }
            for (auto* record : wave) {
                if ((*record->output_tokens).count <= step) {
                    RecordBuilder rest("");
                    rest.edit() = *record;
                    *record = rest.timed(base::to_ms(start), 100, 20).build();
                    continue;
                }
                RecordBuilder victim("");
                victim.edit() = *record;
                *record =
                    victim
                        .says(sentence(step).substr(0, static_cast<std::size_t>(step * 5 - 3)),
                              step)
                        .timed(base::to_ms(start), 100, 20)
                        .error("Context size has been exceeded.")
                        .build();
            }
        }
    }
}

TEST(KvPool, AFullSharedPoolIsAProvenServingDefectWithTheArithmeticAndAFlagThatSuffices) {
    PlantedRun planted({.seed = 3, .slower = 1.2});
    answer::Run& run = planted.run();
    run.server_before["deployed"] = llama_server(1024, 8, true);
    kill_when_pool_is_full(run, 1024);
    const RunJudgement judgement = judge(run);
    const Judgement& verdict = judgement.verdict;
    EXPECT_EQ(verdict.value, Verdict::kServingDefect) << verdict.headline;
    EXPECT_EQ(verdict.cause, Cause::kKvPoolExhausted);
    EXPECT_EQ(verdict.layer, Layer::kMemory);
    EXPECT_EQ(verdict.confidence, Confidence::kProven);
    ASSERT_TRUE(verdict.from_concurrency);
    EXPECT_GE(*verdict.from_concurrency, 4);
    bool arithmetic = false;
    for (const Evidence& evidence : verdict.evidence)
        if (evidence.text.find("the pool holds 1024") != std::string::npos) {
            arithmetic = true;
            EXPECT_NEAR(evidence.value.value_or(0), 1024, 100) << evidence.text;
        }
    EXPECT_TRUE(arithmetic);
    ASSERT_FALSE(verdict.remedies.empty());
    EXPECT_THAT(verdict.remedies.front().setting, HasSubstr("-c "));
    EXPECT_GE(verdict.remedies.front().number.value_or(0), 8 * (60 + 512));
    EXPECT_EQ(static_cast<std::int64_t>(*verdict.remedies.front().number) % 256, 0);
}

TEST(Window, ASplitWindowIsAPolicyFromOneUserWithTheSumShown) {
    const auto window = [](RecordBuilder& builder, base::Random&) {
        const std::int64_t room = 256 - (*builder.edit().prompt_tokens).count;
        if ((*builder.edit().output_tokens).count <= room) return;
        builder.says(sentence(room), room).reason("length");
    };
    PlantedRun planted({.seed = 5, .plant = window, .plant_alone = true});
    planted.run().server_before["deployed"] = llama_server(256, 8, false);
    const Judgement verdict = judge(planted.run()).verdict;
    EXPECT_EQ(verdict.value, Verdict::kPolicy) << verdict.headline;
    EXPECT_EQ(verdict.cause, Cause::kContextLimit);
    EXPECT_EQ(verdict.layer, Layer::kSettings);
    EXPECT_EQ(verdict.confidence, Confidence::kProven);
    EXPECT_EQ(verdict.from_concurrency, 1);
    bool sum = false;
    for (const Evidence& evidence : verdict.evidence)
        sum = sum || evidence.text.find("= 256 tokens") != std::string::npos;
    EXPECT_TRUE(sum);
    ASSERT_FALSE(verdict.remedies.empty());
    EXPECT_EQ(verdict.remedies.front().number, 8 * 768)
        << "60 + 512 tokens rounded up to 256, for each of 8 slots";
}

TEST(Unplanted, ASlowerServerThatCutsNothingIsLatencyOnly) {
    PlantedRun planted({.seed = 7, .slower = 1.6});
    const Judgement verdict = judge(planted.run()).verdict;
    EXPECT_EQ(verdict.value, Verdict::kLatencyOnly) << verdict.headline;
    EXPECT_FALSE(verdict.firm);
    EXPECT_TRUE(next_batch(planted.run()));
}

TEST(Unplanted, AnEvenServerIsUnaffected) {
    PlantedRun planted({.seed = 8});
    EXPECT_EQ(judge(planted.run()).verdict.value, Verdict::kUnaffected)
        << judge(planted.run()).verdict.headline;
}

TEST(Unplanted, AServerWithTheFinishWordsOf2023IsUnaffected) {
    PlantedRun planted({.seed = 8});
    for (answer::Record& record : planted.run().records)
        if (record.end.reason == "stop") record.end.reason = "stopped_eos";
    EXPECT_EQ(judge(planted.run()).verdict.value, Verdict::kUnaffected)
        << judge(planted.run()).verdict.headline;
}

TEST(Unplanted, EnoughAnswersMakeTheVerdictFirm) {
    PlantedRun planted({.seed = 9, .repeat = 20});
    const Judgement verdict = judge(planted.run()).verdict;
    EXPECT_EQ(verdict.value, Verdict::kUnaffected);
    EXPECT_TRUE(verdict.firm);
    EXPECT_FALSE(next_batch(planted.run()));
}

TEST(NextBatch, GoesToTheTopWhereNothingIsCutAndNamesTheBound) {
    PlantedRun planted({.seed = 8});
    const auto batch = next_batch(planted.run());
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->concurrency, 8);
    EXPECT_TRUE(batch->with_alone);
    EXPECT_FALSE(batch->known_pairs);
    EXPECT_EQ(batch->why, "up to 18 % of the answers can still be cut there");
}

TEST(NextBatch, LooksForTheFirstLevelBetweenAWholeOneAndACutOne) {
    const auto at_eight = [](RecordBuilder& builder, base::Random&) {
        if (builder.edit().request.concurrency == 8)
            builder.says("cut in the mid", 20).error("Context size has been exceeded.");
    };
    PlantedRun planted({.seed = 11, .plant = at_eight});
    const auto batch = next_batch(planted.run());
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->concurrency, 6);
    EXPECT_TRUE(batch->known_pairs);
    EXPECT_FALSE(next_batch(planted.run(), {.find_first = false, .bound = 0.1}));
}

TEST(Planted, HalfOfTheAnswersAtEightUsersAreFoundWithDefaultSizes) {
    int cut = 0;
    const auto half = [&cut](RecordBuilder& builder, base::Random&) {
        if (builder.edit().request.concurrency == 8 && cut++ % 2 == 0)
            builder.says("cut in the mid", 20)
                .timed(base::to_ms(*builder.edit().timeline.sent))
                .error("Context size has been exceeded.");
    };
    PlantedRun planted({.seed = 11, .plant = half});
    const Judgement verdict = judge(planted.run()).verdict;
    EXPECT_EQ(verdict.value, Verdict::kServingDefect) << verdict.headline;
    EXPECT_EQ(verdict.from_concurrency, 8);
}

TEST(Planted, OneVictimIsNamedAndLeftUndecided) {
    int cut = 0;
    const auto few = [&cut](RecordBuilder& builder, base::Random&) {
        if (builder.edit().request.concurrency == 8 && cut++ < 1)
            builder.says("cut in the mid", 20).error("the decoder gave up");
    };
    PlantedRun planted({.seed = 12, .plant = few});
    const RunJudgement judgement = judge(planted.run());
    EXPECT_EQ(judgement.verdict.value, Verdict::kInconclusive) << judgement.verdict.headline;
    EXPECT_FALSE(judgement.verdict.missing.empty());
    EXPECT_TRUE(next_batch(planted.run()));
}

TEST(Planted, WordsThatHealthyServersDoNotSayCountAtOnceAndLoadStaysOpen) {
    int cut = 0;
    const auto few = [&cut](RecordBuilder& builder, base::Random&) {
        if (builder.edit().request.concurrency == 8 && cut++ < 3)
            builder.says("cut in the mid", 20).error("the decoder gave up");
    };
    PlantedRun planted({.seed = 12, .plant = few});
    const Judgement verdict = judge(planted.run()).verdict;
    EXPECT_EQ(verdict.value, Verdict::kServingDefect) << verdict.headline;
    EXPECT_EQ(verdict.cause, answer::Cause::kServerError);
    EXPECT_NE(verdict.load.value, LoadBrings::kProven) << verdict.load.why;
}

TEST(Planted, OneAnswerThatTheSharedPoolKilledIsEnough) {
    int cut = 0;
    const auto one = [&cut](RecordBuilder& builder, base::Random&) {
        if (builder.edit().request.concurrency == 8 && cut++ < 1)
            builder.says("cut in the mid", 20).error("Context size has been exceeded.");
    };
    PlantedRun planted({.seed = 12, .plant = one});
    const Judgement verdict = judge(planted.run()).verdict;
    EXPECT_EQ(verdict.value, Verdict::kServingDefect) << verdict.headline;
    EXPECT_EQ(verdict.cause, answer::Cause::kKvPoolExhausted);
    EXPECT_EQ(verdict.load.value, LoadBrings::kProven);
}

TEST(Planted, ARouteDeadlineIsAPolicyOfTheGatewayAndTheRemedyExceedsTheNeed) {
    const auto deadline = [](RecordBuilder& builder, base::Random&) {
        auto& record = builder.edit();
        const double gap = base::to_ms(record.timeline.gaps.empty() ? base::from_ms(20)
                                                                    : record.timeline.gaps.front());
        const auto fit = static_cast<std::int64_t>((15'000 - 100) / gap);
        if (record.text_events <= fit) return;
        builder.says("and the ship went on over the", fit)
            .timed(base::to_ms(*record.timeline.sent), 100, gap,
                   15'000 - 100 - gap * static_cast<double>(fit - 1))
            .unlabelled(answer::Transport::kTruncated)
            .header("server", "envoy");
    };
    PlantedRun planted({.seed = 13,
                        .slower = 2.2,
                        .arms = {"deployed", "control"},
                        .plant = [&](RecordBuilder& builder, base::Random& random) {
                            if (builder.edit().request.arm == "deployed") deadline(builder, random);
                        }});
    const RunJudgement judgement = judge(planted.run());
    EXPECT_EQ(judgement.verdict.value, Verdict::kPolicy) << judgement.verdict.headline;
    EXPECT_EQ(judgement.verdict.cause, Cause::kGatewayDeadline);
    EXPECT_EQ(judgement.verdict.layer, Layer::kGateway);
    EXPECT_THAT(judgement.verdict.headline, HasSubstr("disappears without the gateway"));
    ASSERT_FALSE(judgement.verdict.remedies.empty());
    EXPECT_GT(judgement.verdict.remedies.front().number.value_or(0), 15);
}

TEST(Planted, AnswersCalledFinishedInMidSentenceAreADefectAndAGatewaysWhereItDisappearsWithoutOne) {
    const auto mislabel = [](RecordBuilder& builder, base::Random& random) {
        auto& record = builder.edit();
        if (record.request.concurrency < 8 || record.request.arm != "deployed" ||
            !random.chance(0.9))
            return;
        const std::int64_t half = record.text_events / 2;
        builder.says(record.text.substr(0, record.text.size() / 2 - record.text.size() / 2 % 5 + 3),
                     half);
    };
    PlantedRun alone({.seed = 14, .plant = mislabel});
    const Judgement defect = judge(alone.run()).verdict;
    EXPECT_EQ(defect.value, Verdict::kServingDefect) << defect.headline;
    EXPECT_EQ(defect.from_concurrency, 8);
    PlantedRun both({.seed = 14, .arms = {"deployed", "control"}, .plant = mislabel});
    const Judgement gateway = judge(both.run()).verdict;
    EXPECT_EQ(gateway.value, Verdict::kServingDefect) << gateway.headline;
    EXPECT_EQ(gateway.cause, Cause::kGatewayRewrite);
    EXPECT_EQ(gateway.layer, Layer::kGateway);
}

TEST(Planted, AFullQueueIsAPolicy) {
    const auto full = [](RecordBuilder& builder, base::Random& random) {
        if (builder.edit().request.concurrency == 8 && random.chance(0.7))
            builder.refused(503,
                            "server busy, please try again.  maximum pending requests exceeded");
    };
    PlantedRun planted({.seed = 15, .plant = full});
    const Judgement verdict = judge(planted.run()).verdict;
    EXPECT_EQ(verdict.value, Verdict::kPolicy) << verdict.headline;
    EXPECT_EQ(verdict.cause, Cause::kAdmissionRejected);
    EXPECT_THAT(verdict.headline, testing::StartsWith("Answers are refused from 8 users on: "));
}

TEST(Planted, TheFirstLevelIsCountedBesideTheWorst) {
    std::map<int, int> cut;
    const auto more = [&cut](RecordBuilder& builder, base::Random&) {
        const int users = builder.edit().request.concurrency;
        if ((users == 4 && cut[4]++ < 2) || (users == 8 && cut[8]++ < 9))
            builder.says("cut in the mid", 20).error("the decoder gave up");
    };
    PlantedRun planted({.seed = 21, .plant = more});
    const Judgement verdict = judge(planted.run()).verdict;
    EXPECT_EQ(verdict.from_concurrency, 4) << verdict.headline;
    EXPECT_THAT(
        verdict.headline,
        testing::ContainsRegex("\\(2 of [0-9]+ answers at 4 users, 9 of [0-9]+ answers at 8"));
}

TEST(Planted, AHiddenDefaultIsAPolicyFromOneUserOn) {
    const auto cap = [](RecordBuilder& builder, base::Random&) {
        if ((*builder.edit().output_tokens).count > 100)
            builder.says(sentence(100), 100).reason("length");
    };
    PlantedRun planted({.seed = 16, .plant = cap, .plant_alone = true});
    const Judgement verdict = judge(planted.run()).verdict;
    EXPECT_EQ(verdict.value, Verdict::kPolicy) << verdict.headline;
    EXPECT_EQ(verdict.cause, Cause::kDefaultTokenLimit);
    EXPECT_EQ(verdict.from_concurrency, 1);
}

TEST(Planted, ALimitThatWasAskedForIsNoShortening) {
    const auto limit = [](RecordBuilder& builder, base::Random&) {
        builder.says(sentence(512), 512).reason("length");
    };
    PlantedRun planted({.seed = 17, .plant = limit, .plant_alone = true});
    const RunJudgement judgement = judge(planted.run());
    EXPECT_LT(judgement.verdict.value, Verdict::kPolicy) << judgement.verdict.headline;
    for (const LevelJudgement& level : judgement.arms.front().levels)
        EXPECT_EQ(level.limited, level.answers);
}

TEST(Run, TooFewPairsAreInconclusiveAndNothingIsNothing) {
    PlantedRun small({.seed = 18, .prompts = 3, .repeat = 1});
    EXPECT_EQ(judge(small.run()).verdict.value, Verdict::kInconclusive);
    const RunJudgement nothing = judge({});
    EXPECT_EQ(nothing.verdict.value, Verdict::kInconclusive);
    EXPECT_FALSE(nothing.verdict.missing.empty());
}

TEST(Run, AnInterruptionIsAnArtefactAndNoCut) {
    PlantedRun planted({.seed = 19});
    planted.run().interrupted = true;
    for (std::size_t i = planted.run().records.size() - 8; i < planted.run().records.size(); ++i) {
        RecordBuilder builder("");
        builder.edit() = planted.run().records[i];
        planted.run().records[i] = builder.unlabelled(answer::Transport::kClosedByUs).build();
    }
    const RunJudgement judgement = judge(planted.run());
    EXPECT_LT(judgement.verdict.value, Verdict::kPolicy);
    EXPECT_EQ(judgement.findings.at(planted.run().records.back().request.id).cause,
              Cause::kMeasurementArtefact);
}

/// A run whose budget was over while every `nth` answer of the level was coming, early in each.
answer::Run with_budget_end(int concurrency, int nth, bool planned = true) {
    PlantedRun planted({.seed = 20});
    answer::Run run = planted.run();
    if (planned)
        run.experiment.order = {{.arm = "deployed", .phase = "level", .concurrency = concurrency}};
    int count = 0;
    for (answer::Record& record : run.records) {
        if (record.request.concurrency != concurrency || count++ % nth != 0) continue;
        const std::string text = record.text.substr(0, 12);
        RecordBuilder builder("");
        builder.edit() = record;
        record = builder.says(text, 2)
                     .timed(base::to_ms(*record.timeline.sent))
                     .unlabelled(answer::Transport::kClosedByUs)
                     .build();
    }
    return run;
}

TEST(Run, WhatTheProbeClosedAtItsBudgetsEndIsNoShortenedAnswer) {
    const RunJudgement plain = judge(PlantedRun({.seed = 20}).run());
    for (const int concurrency : {1, 8}) {
        const answer::Run run = with_budget_end(concurrency, 16);
        const RunJudgement judgement = judge(run);
        EXPECT_EQ(judgement.verdict.value, plain.verdict.value) << judgement.verdict.headline;
        int closed = 0;
        for (const answer::Record& record : run.records) {
            const Finding& finding = judgement.findings.at(record.request.id);
            EXPECT_FALSE(finding.shortened.value_or(false)) << record.request.id;
            if (record.end.transport != answer::Transport::kClosedByUs) continue;
            ++closed;
            EXPECT_EQ(finding.cause, Cause::kMeasurementArtefact);
            EXPECT_EQ(finding.shortened, std::nullopt);
            ASSERT_FALSE(finding.evidence.empty());
            EXPECT_NE(finding.evidence.front().text.find("the probe closed it"), std::string::npos);
        }
        EXPECT_EQ(closed, concurrency == 1 ? 2 : 1);
        for (const LevelJudgement& level : judgement.arms.front().levels) {
            EXPECT_EQ(level.completion_rate->value, 1) << "of those that say something";
            EXPECT_EQ(level.cut, 0);
            if (level.paired_length)
                EXPECT_NEAR(level.paired_length->median_ratio, 1, 0.01)
                    << "nothing is compared with what was closed";
        }
    }
}

TEST(Run, ALevelOfWhichTheBudgetLeftLittleIsNotDecided) {
    const RunJudgement judgement = judge(with_budget_end(8, 2));
    EXPECT_EQ(judgement.verdict.value, Verdict::kInconclusive);
    EXPECT_NE(judgement.arms.front().levels.back().why.find(
                  "8 of 16 answers were lost to the measurement itself"),
              std::string::npos)
        << judgement.arms.front().levels.back().why;
}

TEST(Run, AClientThatLeavesOfItsOwnAccordIsStillAClientThatLeft) {
    const answer::Run run = with_budget_end(8, 16, false);
    const RunJudgement judgement = judge(run);
    for (const answer::Record& record : run.records)
        if (record.end.transport == answer::Transport::kClosedByUs)
            EXPECT_EQ(judgement.findings.at(record.request.id).cause, Cause::kClientCancelled)
                << "no plan: no probe's run";
}

/// The answers of the second baseline, with other times.
answer::Run with_later_baseline(double ttft_ms, double gap_ms, bool streamed = true) {
    PlantedRun planted({.seed = 21});
    for (answer::Record& record : planted.run().records) {
        RecordBuilder builder("");
        builder.edit() = record;
        const bool late = record.request.phase == "baseline_after";
        record = builder
                     .timed(base::to_ms(*record.timeline.sent), late ? ttft_ms : 3000,
                            late ? gap_ms : 20)
                     .build();
        if (!streamed) record.timeline.gaps.clear();
    }
    return planted.run();
}

TEST(Run, APromptThatIsRememberedIsNoDriftOfTheMachine) {
    EXPECT_EQ(judge(with_later_baseline(15, 20)).verdict.value, Verdict::kUnaffected)
        << judge(with_later_baseline(15, 20)).verdict.headline;
}

TEST(Run, AMachineThatSlowsDownCloudsWhatIsSaidOfSpeedAndNotOfEnds) {
    for (const bool streamed : {true, false}) {
        const Judgement verdict = judge(with_later_baseline(3000, 60, streamed)).verdict;
        EXPECT_LT(verdict.value, Verdict::kInconclusive) << verdict.headline;
        EXPECT_NE(verdict.headline.find("changed its speed"), std::string::npos)
            << verdict.headline;
        const std::string said = streamed ? "gap between tokens changed" : "time per token changed";
        EXPECT_TRUE(std::ranges::any_of(verdict.missing, [&](const std::string& missing) {
            return missing.find(said) != std::string::npos;
        }));
    }
}

TEST(Run, JudgingTwiceGivesTheSameWords) {
    PlantedRun planted({.seed = 20, .variance = 0.4, .slower = 1.3});
    const RunJudgement once = judge(planted.run()), again = judge(planted.run());
    EXPECT_EQ(once.verdict.headline, again.verdict.headline);
    EXPECT_EQ(once.arms.front().levels.back().why, again.arms.front().levels.back().why);
}

/// Lengths drawn anew at every level, both ways, as llama-server's texts are as a rule; nothing is
/// planted.
TEST(FalseAlarms, TwoHundredUnplantedRunsAreNeverAccused) {
    int runs = 0, accused = 0, proven = 0, variance = 0, slower = 0, calm = 0, open = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        PlantedRun planted({.seed = seed * 7919,
                            .variance = 0.2 + 0.1 * static_cast<double>(seed % 6),
                            .natural_variance_at_baseline = seed % 2 == 0,
                            .slower = seed % 3 == 0 ? 1.5 : 1.0});
        const RunJudgement judgement = judge(planted.run());
        ++runs;
        const Judgement& verdict = judgement.verdict;
        if (verdict.value >= Verdict::kPolicy) ++accused;
        if (verdict.value >= Verdict::kPolicy && verdict.confidence == Confidence::kProven)
            ++proven;
        variance += verdict.value == Verdict::kSamplingVariance;
        slower += verdict.value == Verdict::kLatencyOnly;
        calm += verdict.value == Verdict::kUnaffected;
        open += verdict.value == Verdict::kInconclusive;
    }
    fmt::print(
        "{} unplanted runs: serving_defect or policy {} (proven {}), sampling_variance {}, "
        "latency_only {}, unaffected {}, inconclusive {}\n",
        runs, accused, proven, variance, slower, calm, open);
    EXPECT_EQ(proven, 0);
    EXPECT_EQ(accused, 0);
    EXPECT_LE(variance, runs / 20);
}

TEST(HitRate, PlantedPoolDeathsOfEverySizeAreCounted) {
    for (const double rate : {0.1, 0.3, 0.5, 0.8}) {
        int found = 0, named = 0;
        constexpr int kRuns = 40;
        for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
            PlantedRun planted({.seed = seed * 104'729,
                                .variance = 0.3,
                                .plant = [rate](RecordBuilder& builder, base::Random& random) {
                                    if (builder.edit().request.concurrency == 8 &&
                                        random.chance(rate))
                                        builder.says("cut in the mid", 20)
                                            .error("Context size has been exceeded.");
                                }});
            const Judgement verdict = judge(planted.run()).verdict;
            found += verdict.value == Verdict::kServingDefect;
            named += verdict.cause == Cause::kKvPoolExhausted;
        }
        fmt::print("cut rate {:.0f} % at 8 users: {} of {} runs accused, {} with the right cause\n",
                   rate * 100, found, kRuns, named);
        EXPECT_EQ(found, named);
        if (rate >= 0.5) EXPECT_GE(found, kRuns * 8 / 10);
    }
}

}  // namespace
}  // namespace fullstop::judge
