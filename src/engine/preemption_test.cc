// Small pools, many answers: every mode of admission ends every answer whole, pauses nobody twice, and accounts for every
// block. The model gives each prompt its answer whatever else it serves, so a lost or doubled token shows in the text.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <chrono>
#include <map>
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

constexpr std::array kModes = {AdmissionMode::kReserve, AdmissionMode::kForecast, AdmissionMode::kEager};

struct Served {
    Served(Tokens window, std::int64_t sequences, Tokens pool, AdmissionMode mode)
        : backend(window, sequences, pool), engine(backend, {.max_queue = 10'000, .admission = mode}) {}

    void ask(SequenceId id, const std::string& prompt, std::int64_t max_tokens) {
        Submission submission;
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
    }
    void read() {
        for (const EngineEvent& event : std::exchange(events, {})) std::visit([&](const auto& what) { on(what); }, event);
    }
    void on(const Refused& event) { ends[event.id] = event.end; }
    void on(const Admitted& event) { EXPECT_EQ(++admitted[event.id], 1) << "a pause is no second admission"; }
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

TEST(Preemption, EagerAdmissionPausesTheNewestAndItsAnswerIsWholeAllTheSame) {
    Served run(Tokens{64}, 2, Tokens{64}, AdmissionMode::kEager);
    run.backend.answers["a\n"] = std::string(50, 'a');
    run.backend.answers["b\n"] = std::string(50, 'b');
    run.ask(1, "a\n", 60);
    run.ask(2, "b\n", 60);
    run.run();
    EXPECT_EQ(run.texts[1], std::string(50, 'a'));
    EXPECT_EQ(run.texts[2], std::string(50, 'b'));
    EXPECT_EQ(run.ends[1].numbers.pauses, 0) << "the older one goes on";
    EXPECT_EQ(run.ends[2].numbers.pauses, 1);
    EXPECT_GT(run.ends[2].numbers.paused, 0ms);
    EXPECT_EQ(run.ends[2].cause, Cause::kNaturalEnd);
    EXPECT_EQ(run.engine.occupancy().preemptions, 1);
}

TEST(Preemption, ReservationNeverPauses) {
    Served run(Tokens{64}, 8, Tokens{64}, AdmissionMode::kReserve);
    for (SequenceId id = 1; id <= 20; ++id) run.ask(id, fmt::format("{}\n", id), 60);
    run.run();
    EXPECT_EQ(run.engine.occupancy().preemptions, 0);
}

TEST(Preemption, AForecastLearnsFromTheAnswersThatEnded) {
    Served run(Tokens{128}, 8, Tokens{128}, AdmissionMode::kForecast);
    for (int i = 0; i < 40; ++i) run.backend.answers[fmt::format("{}\n", i)] = std::string(10, 'x');
    run.ask(0, "0\n", 120);
    run.ask(1, "1\n", 120);
    run.step();
    EXPECT_EQ(run.engine.occupancy().running, 1) << "nothing is known yet: the worst case is reserved";
    run.run();
    for (SequenceId id = 2; id < 40; ++id) run.ask(id, fmt::format("{}\n", id), 120);
    run.step();
    EXPECT_EQ(run.engine.occupancy().running, 8) << "ten tokens each fit eight times";
    run.run();
    EXPECT_EQ(run.engine.occupancy().preemptions, 0);
}

TEST(Preemption, CancellingAPausedAnswerFreesNothingTwice) {
    Served run(Tokens{64}, 2, Tokens{64}, AdmissionMode::kEager);
    run.backend.answers["a\n"] = std::string(50, 'a');
    run.backend.answers["b\n"] = std::string(50, 'b');
    run.ask(1, "a\n", 60);
    run.ask(2, "b\n", 60);
    while (run.engine.occupancy().preemptions == 0) ASSERT_TRUE(run.step());
    run.engine.cancel(run.now += 1ms, 2, Cause::kClientCancelled, "left", run.events);
    run.read();
    EXPECT_EQ(run.ends[2].cause, Cause::kClientCancelled);
    run.run();
    EXPECT_EQ(run.texts[1], std::string(50, 'a'));
}

/// Pools of exactly one largest answer, a little more, and a quarter more; random prompts, limits, arrivals and cancellations.
void every_answer_ends_whole(AdmissionMode mode, double size) {
    constexpr Tokens kWindow{128};
    const Tokens pool{static_cast<std::int64_t>(size * 128) / kBlockTokens.count * kBlockTokens.count};
    rc::check(fmt::format("{} with a pool of {} tokens", to_string(mode), pool.count), [&] {
        Served run(kWindow, 8, pool, mode);
        const int answers = *rc::gen::inRange(1, 40);
        std::map<SequenceId, std::pair<std::string, std::int64_t>> asked;
        std::map<SequenceId, bool> cancelled;
        for (SequenceId id = 1; std::cmp_less_equal(id, answers); ++id) {
            const std::string prompt = fmt::format("{}{}\n", std::string(static_cast<std::size_t>(*rc::gen::inRange(0, 60)), 'p'), id);
            const std::int64_t limit = *rc::gen::inRange<std::int64_t>(1, kWindow.count - std::ssize(prompt));
            asked[id] = {prompt, limit};
            run.ask(id, prompt, limit);
            for (int steps = *rc::gen::inRange(0, 12); steps > 0; --steps) run.step();
            if (const SequenceId victim = *rc::gen::inRange<SequenceId>(1, 10 * id); victim <= id && !run.ends.contains(victim)) {
                cancelled[victim] = true;
                run.engine.cancel(run.now += 1ms, victim, Cause::kClientCancelled, "left", run.events);
                run.read();
            }
        }
        run.run();
        for (const auto& [id, what] : asked) {
            RC_ASSERT(run.ends.contains(id));
            const std::string whole = run.backend.answer_to(what.first);
            RC_ASSERT(run.ends[id].numbers.pauses <= (mode == AdmissionMode::kReserve ? 0 : 1));
            if (cancelled.contains(id)) {
                RC_ASSERT(whole.starts_with(run.texts[id]));
                continue;
            }
            RC_ASSERT(run.texts[id] == whole.substr(0, static_cast<std::size_t>(what.second)));
            const bool limited = std::ssize(whole) >= what.second;
            RC_ASSERT(run.ends[id].cause == Cause::kNaturalEnd || (limited && run.ends[id].cause == Cause::kTokenLimit));
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

TEST(Preemption, ThousandsOfAnswersInEachModeAndPoolLoseNothing) {
    constexpr SequenceId kAnswers = 2000;  // 10 000 were tried too: the same, in a minute
    for (const AdmissionMode mode : kModes)
        for (const std::int64_t blocks : {8, 9, 10, 24}) {
            Served run(Tokens{128}, 8, kBlockTokens * blocks, mode);
            base::Random random(static_cast<std::uint64_t>(blocks));
            SequenceId id = 0;
            while (id < kAnswers) {
                while (id < kAnswers && run.engine.occupancy().waiting < 20) {
                    ++id;
                    const std::string prompt = fmt::format("{}{}\n", std::string(random.below(40), 'p'), id);
                    run.ask(id, prompt, 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(127 - std::ssize(prompt)))));
                }
                ASSERT_TRUE(run.step());
            }
            run.run();
            std::int64_t whole = 0, tokens = 0;
            for (const auto& [key, end] : run.ends) {
                whole += end.cause == Cause::kNaturalEnd || end.cause == Cause::kTokenLimit;
                tokens += end.numbers.output_tokens.count;
                EXPECT_LE(end.numbers.pauses, 1);
            }
            EXPECT_EQ(whole, std::int64_t{kAnswers});
            fmt::print("{} with {} tokens: {} steps for {} tokens, {} pauses\n", to_string(mode), blocks * kBlockTokens.count, run.steps, tokens,
                       run.engine.occupancy().preemptions);
        }
}

}  // namespace
}  // namespace fullstop::engine
