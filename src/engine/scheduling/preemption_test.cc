// Small pools, many answers: every mode of admission, by swap and by recompute, ends every answer
// whole and accounts for every block and byte. The model gives each prompt its answer whatever else
// it serves, so a lost or doubled token shows in the text.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <chrono>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "engine/test_backend.h"

namespace fullstop::engine {
namespace {

using answer::Cause;
using base::Instant;
using base::Tokens;
using namespace std::chrono_literals;

constexpr std::array kModes = {AdmissionMode::kReserve, AdmissionMode::kForecast,
                               AdmissionMode::kEager};

struct Served {
    Served(Tokens window, std::int64_t sequences, Tokens pool, AdmissionMode mode,
           base::Bytes host = kDefaultHostMemory)
        : backend(window, sequences, pool),
          engine(backend, {.max_queue = 10'000, .admission = mode, .host_memory = host}) {}

    void ask(SequenceId id, const std::string& prompt, std::int64_t max_tokens,
             Submission submission = {}) {
        submission.id = id;
        submission.arrived = now;
        submission.prompt = prompt;
        submission.sampling.temperature = 0;
        submission.max_tokens = Tokens{max_tokens};
        engine.submit(now += 1ms, std::move(submission), events);
        read();
    }
    bool step() {
        const bool more = engine.plan(now += 1ms, events);
        if (more) {
            engine.compute();
            engine.commit(now += 1ms, events);
            ++steps;
        }
        read();
        EXPECT_EQ(engine.occupancy().kv_used.count, backend.cells());
        return more;
    }
    void run() {
        while (step()) ASSERT_LT(steps, 1'000'000) << "a livelock";
        EXPECT_TRUE(engine.idle()) << engine.occupancy().waiting << " wait and nothing runs";
        EXPECT_EQ(backend.cells(), 0);
        EXPECT_EQ(engine.pool().free(), engine.pool().total());
        EXPECT_EQ(engine.occupancy().host_used, engine.occupancy().host_prefixes)
            << "paused answers hold nothing";
    }
    int pauses() const {
        return static_cast<int>(engine.occupancy().swaps + engine.occupancy().recomputes);
    }
    void read() {
        for (const EngineEvent& event : std::exchange(events, {}))
            std::visit([&](const auto& what) { on(what); }, event);
    }
    void on(const Refused& event) { ends[event.id] = event.end; }
    void on(const PromptShown&) {}
    void on(const Admitted& event) {
        EXPECT_EQ(++admitted[event.id], 1) << "a pause is no second admission";
    }
    void on(const Produced& event) { texts[event.id] += event.text; }
    void on(const Ended& event) {
        EXPECT_FALSE(ends.contains(event.id));
        texts[event.id] += event.text;
        ends[event.id] = event.end;
    }

    TestBackend backend;
    Engine engine;
    Instant now{};
    EngineEvents events;
    std::int64_t steps = 0;
    std::map<SequenceId, std::string> texts;
    std::map<SequenceId, AnswerEnd> ends;
    std::map<SequenceId, int> admitted;
};

constexpr base::Bytes kNoHost{0};

/// Two answers of 50 tokens in a pool of one window of 64.
struct TwoInAPoolForOne : Served {
    explicit TwoInAPoolForOne(base::Bytes host = kDefaultHostMemory)
        : Served(Tokens{64}, 2, Tokens{64}, AdmissionMode::kEager, host) {
        backend.answers["a\n"] = std::string(50, 'a');
        backend.answers["b\n"] = std::string(50, 'b');
        ask(1, "a\n", 60);
        ask(2, "b\n", 60);
    }
};

TEST(Preemption, EagerAdmissionPausesTheNewestAndItsAnswerIsWholeAllTheSame) {
    for (const base::Bytes host : {kDefaultHostMemory, kNoHost}) {
        TwoInAPoolForOne run(host);
        run.run();
        EXPECT_EQ(run.texts[1], std::string(50, 'a'));
        EXPECT_EQ(run.texts[2], std::string(50, 'b'));
        EXPECT_EQ(run.ends[1].numbers.swaps + run.ends[1].numbers.recomputes, 0)
            << "the older one goes on";
        EXPECT_GE(run.ends[2].numbers.swaps, host == kNoHost ? 0 : 1);
        EXPECT_GE(run.ends[2].numbers.recomputes, host == kNoHost ? 1 : 0);
        EXPECT_GT(run.ends[2].numbers.paused, 0ms);
        EXPECT_EQ(run.ends[2].numbers.kv_bytes_peak, base::Bytes{10 * 52})
            << "what it held before it was paused counts";
        EXPECT_EQ(run.ends[2].cause, Cause::kNaturalEnd);
        const Occupancy now = run.engine.occupancy();
        EXPECT_EQ(now.swapped_in, now.swapped_out);
        EXPECT_EQ(now.swapped_out > base::Bytes{}, host != kNoHost);
    }
}

TEST(Preemption, ASwappedAnswerComputesNoTokenTwice) {
    const auto rows = [](const Served& run) {
        std::size_t all = 0;
        for (const std::size_t step : run.backend.rows_of_steps) all += step;
        return all;
    };
    TwoInAPoolForOne swapped, computed(kNoHost);
    swapped.run();
    computed.run();
    EXPECT_EQ(rows(swapped), 2U * 52) << "prompts of 2 tokens, answers of 50";
    EXPECT_GT(rows(computed), 2U * 52);
}

TEST(Preemption, ARestoreThatFailsFallsBackToComputingWithTheSameText) {
    TwoInAPoolForOne run;
    run.backend.fail_restores = 1;
    run.run();
    EXPECT_EQ(run.texts[2], std::string(50, 'b'));
    EXPECT_GE(run.ends[2].numbers.recomputes, 1);
}

TEST(Preemption, AnInteractiveRequestPausesABatchAnswerAndNotOneOfItsOwnClass) {
    Served run(Tokens{64}, 2, Tokens{128}, AdmissionMode::kReserve);
    for (const char* prompt : {"a\n", "b\n", "c\n", "d\n"})
        run.backend.answers[prompt] = std::string(40, prompt[0]);
    run.ask(1, "a\n", 60, {.priority = Priority::kBatch});
    run.ask(2, "b\n", 60, {.priority = Priority::kInteractive});
    for (int i = 0; i < 5; ++i) run.step();
    run.ask(3, "c\n", 60, {.priority = Priority::kInteractive});
    EXPECT_EQ(run.pauses(), 1);
    EXPECT_TRUE(run.admitted.contains(3)) << "both places are taken, one by a batch answer";
    run.ask(4, "d\n", 60, {.priority = Priority::kInteractive});
    EXPECT_FALSE(run.admitted.contains(4)) << "nobody of its own class makes way";
    run.run();
    for (SequenceId id = 1; id <= 4; ++id)
        EXPECT_EQ(run.texts[id], std::string(40, static_cast<char>('a' + id - 1)));
    EXPECT_EQ(run.ends[1].numbers.swaps, 1);
}

TEST(Preemption, ABatchAnswerThatWaitedLongIsNotPassedForEver) {
    Served run(Tokens{64}, 1, Tokens{64}, AdmissionMode::kReserve);
    run.ask(1, "a\n", 60, {.priority = Priority::kBatch});
    SequenceId next = 2;
    while (!run.ends.contains(1)) {
        ASSERT_LT(next, 200U) << "interactive requests never end";
        run.ask(next, fmt::format("{}\n", next), 60, {.priority = Priority::kInteractive});
        ++next;
        for (int i = 0; i < 3; ++i) run.step();
        run.now += 5s;
    }
    run.run();
}

TEST(Preemption, ADeadlineMakesUrgentAndEndsOnlyTheAnswerThatAskedForThat) {
    Served run(Tokens{64}, 1, Tokens{64}, AdmissionMode::kReserve);
    for (const char* prompt : {"a\n", "b\n", "c\n"})
        run.backend.answers[prompt] = std::string(40, prompt[0]);
    run.ask(1, "a\n", 60);
    run.ask(2, "b\n", 60);
    run.ask(3, "c\n", 60, {.deadline = 500ms});
    while (!run.ends.contains(1)) run.step();
    run.step();
    EXPECT_TRUE(run.admitted.contains(3)) << "the one with a deadline goes first";
    EXPECT_FALSE(run.admitted.contains(2));
    run.now += 1s;
    run.run();
    EXPECT_EQ(run.texts[3], std::string(40, 'c')) << "late, and whole";

    run.backend.answers["d\n"] = std::string(40, 'd');
    run.ask(4, "d\n", 60, {.deadline = 500ms, .on_deadline = OnDeadline::kError});
    for (int i = 0; i < 5; ++i) run.step();
    run.now += 1s;
    run.step();
    EXPECT_EQ(run.ends[4].cause, Cause::kGenerationTimeLimit);
    EXPECT_NE(run.ends[4].detail.find("500 ms"), std::string::npos) << run.ends[4].detail;
    run.run();
}

TEST(Preemption, TheClientThatWasServedLeastGoesFirst) {
    Served run(Tokens{64}, 1, Tokens{64}, AdmissionMode::kReserve);
    for (SequenceId id = 1; id <= 10; ++id)
        run.ask(id, fmt::format("{}\n", id), 60, {.client = "many"});
    run.ask(11, "x\n", 60, {.client = "one"});
    while (run.admitted.size() < 3) run.step();
    EXPECT_TRUE(run.admitted.contains(11)) << "ten requests of another client came before it";
    run.run();
}

TEST(Preemption, ReservationNeverPauses) {
    Served run(Tokens{64}, 8, Tokens{64}, AdmissionMode::kReserve);
    for (SequenceId id = 1; id <= 20; ++id) run.ask(id, fmt::format("{}\n", id), 60);
    run.run();
    EXPECT_EQ(run.pauses(), 0);
}

TEST(Preemption, AForecastLearnsFromTheAnswersThatEnded) {
    Served run(Tokens{128}, 8, Tokens{128}, AdmissionMode::kForecast);
    for (int i = 0; i < 40; ++i) run.backend.answers[fmt::format("{}\n", i)] = std::string(10, 'x');
    run.ask(0, "0\n", 120);
    run.ask(1, "1\n", 120);
    run.step();
    EXPECT_EQ(run.engine.occupancy().running, 2)
        << "nothing is known yet: half of the limit is expected of each";
    run.run();
    for (SequenceId id = 2; id < 40; ++id) run.ask(id, fmt::format("{}\n", id), 120);
    run.step();
    EXPECT_EQ(run.engine.occupancy().running, 8) << "ten tokens each fit eight times";
    run.run();
    EXPECT_EQ(run.pauses(), 0);
}

TEST(Preemption, CancellingAPausedAnswerFreesNothingTwice) {
    TwoInAPoolForOne run;
    while (run.pauses() == 0) ASSERT_TRUE(run.step());
    run.engine.cancel(run.now += 1ms, 2, Cause::kClientCancelled, "left", run.events);
    run.read();
    EXPECT_EQ(run.ends[2].cause, Cause::kClientCancelled);
    EXPECT_EQ(run.engine.occupancy().host_used, base::Bytes{});
    run.run();
    EXPECT_EQ(run.texts[1], std::string(50, 'a'));
}

const std::string kSystem = std::string(64, 's');

TEST(SharedBeginning, WhatSeveralAnswersBeginWithIsComputedAndKeptOnce) {
    Served run(Tokens{128}, 4, Tokens{208}, AdmissionMode::kReserve);
    for (const char* tail : {"a\n", "b\n", "c\n"})
        run.backend.answers[kSystem + tail] = std::string(40, tail[0]);
    std::int64_t most = 0;
    for (SequenceId id = 1; id <= 3; ++id)
        run.ask(id, kSystem + std::string(1, static_cast<char>('a' + id - 1)) + "\n", 45);
    while (run.step()) most = std::max(most, run.engine.occupancy().running);
    EXPECT_EQ(most, 3) << "each would need 112 of 208 tokens for itself";
    EXPECT_EQ(run.backend.shares, 2);
    EXPECT_EQ(run.pauses(), 0);
    const auto rows = std::accumulate(run.backend.rows_of_steps.begin(),
                                      run.backend.rows_of_steps.end(), std::size_t{0});
    EXPECT_EQ(rows, 64U + 3 * (2 + 40)) << "the beginning once, then each tail and answer";
    for (SequenceId id = 1; id <= 3; ++id) {
        EXPECT_EQ(run.texts[id], std::string(40, static_cast<char>('a' + id - 1)));
        EXPECT_EQ(run.ends[id].numbers.cached_tokens, Tokens{id == 1 ? 0 : 64});
    }
    run.run();
}

TEST(SharedBeginning, AnotherClientComputesItsOwn) {
    Served run(Tokens{128}, 4, Tokens{512}, AdmissionMode::kReserve);
    Submission other;
    other.client = "other";
    run.ask(1, kSystem + "a\n", 20);
    run.step();
    run.ask(2, kSystem + "b\n", 20, std::move(other));
    run.run();
    EXPECT_EQ(run.backend.shares, 0);
}

TEST(SharedBeginning, NobodyWaitsForAnAnswerOfALowerClassToComputeIt) {
    for (const Priority first : {Priority::kNormal, Priority::kBatch}) {
        Served run(Tokens{128}, 4, Tokens{512}, AdmissionMode::kReserve);
        run.ask(1, kSystem + "a\n", 20, {.priority = first});
        run.ask(2, kSystem + "b\n", 20);
        run.step();
        EXPECT_EQ(run.engine.occupancy().running, first == Priority::kBatch ? 2 : 1);
        run.run();
    }
}

/// The one whose cells they were is paused and ends elsewhere: the others keep them.
TEST(SharedBeginning, ItOutlivesTheAnswerThatComputedIt) {
    for (const base::Bytes host : {kDefaultHostMemory, kNoHost}) {
        Served run(Tokens{128}, 2, Tokens{256}, AdmissionMode::kEager, host);
        for (const char* tail : {"a\n", "b\n", "c\n"})
            run.backend.answers[kSystem + tail] = std::string(40, tail[0]);
        run.ask(1, kSystem + "a\n", 45, {.priority = Priority::kBatch});
        run.step();
        run.ask(2, kSystem + "b\n", 45);
        for (int i = 0; i < 5; ++i) run.step();
        EXPECT_EQ(run.backend.shares, 1);
        run.ask(3, kSystem + "c\n", 45,
                {.priority = Priority::kInteractive});  // takes the place of the first
        run.run();
        EXPECT_EQ(run.ends[1].numbers.swaps + run.ends[1].numbers.recomputes, 1);
        for (SequenceId id = 1; id <= 3; ++id)
            EXPECT_EQ(run.texts[id], std::string(40, static_cast<char>('a' + id - 1)));
    }
}

/// What the others have stays, and is found again: in the cells of one that runs, or in the copy of
/// one that ended; else all is computed again.
TEST(SharedBeginning, AnAnswerThatIsPausedCopiesOnlyWhatIsItsOwn) {
    enum class Then { kOtherRuns, kOtherEnded, kOtherEndedAndIsForgotten };
    for (const Then then : {Then::kOtherRuns, Then::kOtherEnded, Then::kOtherEndedAndIsForgotten}) {
        const bool forgotten = then == Then::kOtherEndedAndIsForgotten;
        Served run(Tokens{128}, 2, Tokens{256}, AdmissionMode::kEager,
                   forgotten ? base::Bytes{200} : kDefaultHostMemory);  // 20 tokens of 10 bytes
        for (const char* tail : {"a\n", "b\n", "c\n"})
            run.backend.answers[kSystem + tail] = std::string(40, tail[0]);
        run.ask(1, kSystem + "a\n", then == Then::kOtherRuns ? 45 : 20);
        run.step();
        run.ask(2, kSystem + "b\n", 45, {.priority = Priority::kBatch});
        for (int i = 0; i < 9; ++i) run.step();
        ASSERT_EQ(run.backend.shares, 1);
        const auto in_kv = run.engine.occupancy().kv_used;
        run.backend.answers["urgent\n"] = std::string(then == Then::kOtherRuns ? 5 : 40, 'u');
        run.ask(3, "urgent\n", 45,
                {.priority = Priority::kInteractive});  // takes the place of the second
        run.step();
        const std::int64_t copied = run.engine.occupancy().host_used.count / 10;
        EXPECT_GT(copied, 0);
        EXPECT_LE(copied, in_kv.count - 64) << "not the beginning";
        run.run();
        EXPECT_EQ(run.backend.appends, forgotten ? 0 : 1);
        EXPECT_EQ(run.ends[2].numbers.swaps, forgotten ? 0 : 1);
        EXPECT_EQ(run.ends[2].numbers.recomputes, forgotten ? 1 : 0);
        EXPECT_EQ(run.backend.shares, then == Then::kOtherRuns ? 2 : 1);
        EXPECT_EQ(run.texts[2], std::string(40, 'b'));
    }
}

/// Pools of exactly one largest answer, a little more, and a quarter more; random prompts, limits,
/// arrivals and cancellations. Classes, deadlines and clients mixed; host memory for all, some or
/// none of the pauses.
void every_answer_ends_whole(AdmissionMode mode, double size) {
    constexpr Tokens kWindow{128};
    const Tokens pool{static_cast<std::int64_t>(size * 128) / kBlockTokens.count *
                      kBlockTokens.count};
    rc::check(fmt::format("{} with a pool of {} tokens", to_string(mode), pool.count), [&] {
        Served run(kWindow, 8, pool, mode,
                   base::Bytes{*rc::gen::element<std::int64_t>(0, 600, 1'000'000)});
        run.backend.fail_restores = *rc::gen::element(0, 0, 3);
        const int answers = *rc::gen::inRange(1, 40);
        std::map<SequenceId, std::pair<std::string, std::int64_t>> asked;
        std::map<SequenceId, bool> cancelled;
        for (SequenceId id = 1; std::cmp_less_equal(id, answers); ++id) {
            const std::string prompt = fmt::format(
                "{}{}\n", std::string(static_cast<std::size_t>(*rc::gen::inRange(0, 60)), 'p'), id);
            const std::int64_t limit =
                *rc::gen::inRange<std::int64_t>(1, kWindow.count - std::ssize(prompt));
            asked[id] = {prompt, limit};
            Submission submission{.priority = static_cast<Priority>(*rc::gen::inRange(0, 3)),
                                  .client = std::string(1, *rc::gen::element('x', 'y'))};
            if (*rc::gen::inRange(0, 4) == 0)
                submission.deadline = std::chrono::milliseconds(*rc::gen::inRange(1, 1000));
            run.ask(id, prompt, limit, std::move(submission));
            for (int steps = *rc::gen::inRange(0, 12); steps > 0; --steps) run.step();
            if (const SequenceId victim = *rc::gen::inRange<SequenceId>(1, 10 * id);
                victim <= id && !run.ends.contains(victim)) {
                cancelled[victim] = true;
                run.engine.cancel(run.now += 1ms, victim, Cause::kClientCancelled, "left",
                                  run.events);
                run.read();
            }
        }
        run.run();
        for (const auto& [id, what] : asked) {
            RC_ASSERT(run.ends.contains(id));
            const std::string whole = run.backend.answer_to(what.first);
            if (cancelled.contains(id)) {
                RC_ASSERT(whole.starts_with(run.texts[id]));
                continue;
            }
            RC_ASSERT(run.texts[id] == whole.substr(0, static_cast<std::size_t>(what.second)));
            const bool limited = std::ssize(whole) >= what.second;
            RC_ASSERT(run.ends[id].cause == Cause::kNaturalEnd ||
                      (limited && run.ends[id].cause == Cause::kTokenLimit));
        }
    });
}

TEST(Preemption, EveryAnswerEndsWholeInAPoolOfExactlyOneLargestAnswer) {
    for (const AdmissionMode mode : kModes) every_answer_ends_whole(mode, 1);
}
TEST(Preemption, EveryAnswerEndsWholeInAPoolALittleLarger) {
    for (const AdmissionMode mode : kModes) every_answer_ends_whole(mode, 1.13);
}
TEST(Preemption, EveryAnswerEndsWholeInAPoolAQuarterLarger) {
    for (const AdmissionMode mode : kModes) every_answer_ends_whole(mode, 1.25);
}

/// Bounded: each pause for memory asks for twice the headroom of the one before, and a pool of 24
/// blocks is doubled up soon.
TEST(Preemption, ThousandsOfAnswersInEachModeAndPoolLoseNothing) {
    constexpr SequenceId kAnswers = 1000;  // 10 000 were tried too: the same, in a minute
    constexpr int kMostPauses = 8;
    int appends = 0;
    for (const base::Bytes host : {kDefaultHostMemory, kNoHost})
        for (const AdmissionMode mode : kModes)
            for (const std::int64_t blocks : {8, 9, 10, 24}) {
                Served run(Tokens{128}, 8, kBlockTokens * blocks, mode, host);
                base::Random random(static_cast<std::uint64_t>(blocks));
                SequenceId id = 0;
                while (id < kAnswers) {
                    while (id < kAnswers && run.engine.occupancy().waiting < 20) {
                        ++id;
                        const std::string prompt =
                            fmt::format("{}{}\n", std::string(random.below(40), 'p'), id);
                        run.ask(id, prompt,
                                1 + static_cast<std::int64_t>(random.below(
                                        static_cast<std::uint64_t>(127 - std::ssize(prompt)))));
                    }
                    ASSERT_TRUE(run.step());
                }
                run.run();
                std::int64_t whole = 0, tokens = 0;
                int most = 0;
                for (const auto& [key, end] : run.ends) {
                    whole += end.cause == Cause::kNaturalEnd || end.cause == Cause::kTokenLimit;
                    tokens += end.numbers.output_tokens.count;
                    most = std::max(most, end.numbers.swaps + end.numbers.recomputes);
                }
                EXPECT_EQ(whole, std::int64_t{kAnswers});
                EXPECT_LE(most, kMostPauses);
                EXPECT_GT(run.backend.shares, 0);
                appends += run.backend.appends;
                fmt::print(
                    "{} by {} with {} tokens: {} steps for {} tokens, {} pauses, at most {} of one "
                    "answer\n",
                    to_string(mode), host == kNoHost ? "recompute" : "swap",
                    blocks * kBlockTokens.count, run.steps, tokens, run.pauses(), most);
            }
    EXPECT_GT(appends, 0) << "of answers that left a shared beginning behind";
}

}  // namespace
}  // namespace fullstop::engine
