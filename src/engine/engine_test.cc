// Every answer ends once, for its true reason, and leaves nothing behind.
#include "engine/engine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <map>

#include "engine/test_backend.h"

namespace fullstop::engine {
namespace {

using answer::Cause;
using base::Instant;
using base::Tokens;
using namespace std::chrono_literals;

/// An engine with a clock that moves by a millisecond a call, and all that came out, by id.
struct Bench {
    explicit Bench(TestBackend model, std::size_t max_queue = 64,
                   AdmissionMode admission = AdmissionMode::kReserve)
        : backend(std::move(model)),
          engine(backend, {.max_queue = max_queue, .admission = admission}) {}

    struct Came {
        std::string text;
        int tokens = 0, ends = 0;
        std::optional<AnswerEnd> end;
        std::optional<base::Duration> retry_after;
        std::string code;
        std::vector<base::Duration> gaps;
    };

    Submission ask(SequenceId id, std::string prompt, std::optional<std::int64_t> max_tokens = {},
                   std::vector<std::string> stop = {}) {
        Submission out;
        out.id = id;
        out.arrived = now;
        out.prompt = std::move(prompt);
        out.sampling.temperature = 0;
        out.stop = std::move(stop);
        if (max_tokens) out.max_tokens = Tokens{*max_tokens};
        return out;
    }
    void submit(Submission submission) {
        engine.submit(now += 1ms, std::move(submission), events);
        read();
    }
    void cancel(SequenceId id) {
        engine.cancel(now += 1ms, id, Cause::kClientCancelled, "left", events);
        read();
    }
    bool step() {
        const bool more = engine.plan(now += 1ms, events);
        if (more) {
            engine.compute();
            engine.commit(now += 1ms, events);
        }
        read();
        EXPECT_EQ(engine.occupancy().kv_used.count, backend.cells())
            << "the engine's account is the model's";
        return more;
    }
    void run() {
        for (int limit = 0; step(); ++limit) ASSERT_LT(limit, 100'000) << "answers end";
        EXPECT_TRUE(engine.idle());
        EXPECT_EQ(backend.cells(), 0);
        EXPECT_EQ(backend.sequences(), 0U);
        EXPECT_EQ(engine.pool().free(), engine.pool().total());
    }
    void read() {
        for (const EngineEvent& event : std::exchange(events, {}))
            std::visit([&](const auto& what) { on(what); }, event);
    }
    void on(const Refused& event) {
        end(event.id, event.end).retry_after = event.retry_after, came[event.id].code = event.code;
    }
    void on(const PromptShown&) {}
    void on(const Admitted& event) { admitted.push_back(event.id); }
    void on(const Produced& event) {
        Came& c = came[event.id];
        EXPECT_EQ(c.ends, 0) << "nothing comes after the end";
        EXPECT_EQ(event.gap.has_value(), c.tokens > 0);
        c.text += event.text;
        ++c.tokens;
        if (event.gap) c.gaps.push_back(*event.gap);
    }
    void on(const Ended& event) { came[event.id].text += event.text, end(event.id, event.end); }
    Came& end(SequenceId id, const AnswerEnd& how) {
        Came& c = came[id];
        EXPECT_EQ(++c.ends, 1) << "every answer ends once";
        c.end = how;
        return c;
    }
    Cause cause(SequenceId id) { return came.at(id).end.value().cause; }

    TestBackend backend;
    Engine engine;
    Instant now{};
    EngineEvents events;
    std::map<SequenceId, Came> came;
    std::vector<SequenceId> admitted;
};

TEST(Engine, AnAnswerThatEndsByItselfIsANaturalEndWithItsWholeText) {
    Bench bench(TestBackend{});
    bench.backend.answers["hi\n"] = "hello there";
    bench.submit(bench.ask(1, "hi\n"));
    bench.run();
    EXPECT_EQ(bench.came[1].text, "hello there");
    EXPECT_EQ(bench.cause(1), Cause::kNaturalEnd);
    const AnswerNumbers& numbers = bench.came[1].end->numbers;
    EXPECT_EQ(numbers.prompt_tokens, Tokens{3});
    EXPECT_EQ(numbers.output_tokens, Tokens{11});
    EXPECT_EQ(numbers.requested_max_tokens, std::nullopt);
    EXPECT_EQ(numbers.effective_max_tokens, Tokens{125}) << "what the window leaves";
    EXPECT_EQ(numbers.kv_bytes_peak, base::Bytes{10 * 14})
        << "prompt and output, but the end token is never stored";
    EXPECT_GT(numbers.ttft.value(), 0ms);
    EXPECT_EQ(bench.came[1].gaps.size(), 10U);
}

TEST(Engine, AnEmptyAnswerIsANaturalEndToo) {
    Bench bench(TestBackend{});
    bench.backend.answers["\n"] = "";
    bench.submit(bench.ask(1, "\n"));
    bench.run();
    EXPECT_EQ(bench.cause(1), Cause::kNaturalEnd);
    EXPECT_EQ(bench.came[1].tokens, 0);
}

TEST(Engine, TheLimitThatWasAskedForIsATokenLimitAndTheWindowIsAContextLimit) {
    Bench bench(TestBackend{Tokens{32}});
    bench.backend.answers["p\n"] = std::string(100, 'x');
    bench.submit(bench.ask(1, "p\n", 7));
    bench.submit(bench.ask(2, "p\n"));
    bench.submit(bench.ask(3, "p\n", 30));
    bench.run();
    EXPECT_EQ(bench.cause(1), Cause::kTokenLimit);
    EXPECT_EQ(bench.came[1].text, std::string(7, 'x'));
    EXPECT_EQ(bench.cause(2), Cause::kContextLimit);
    EXPECT_EQ(bench.came[2].text.size(), 30U) << "prompt + output fill the window of 32 exactly";
    EXPECT_EQ(bench.cause(3), Cause::kTokenLimit) << "the same length, but it was asked for";
}

TEST(Engine, AnEndAtTheLimitItselfIsStillTheModelsWhenTheTokenBeforeWasTheLast) {
    Bench bench(TestBackend{});
    bench.backend.answers["p\n"] = "abc";
    bench.submit(bench.ask(1, "p\n", 4));
    bench.submit(bench.ask(2, "p\n", 3));
    bench.run();
    EXPECT_EQ(bench.cause(1), Cause::kNaturalEnd);
    EXPECT_EQ(bench.cause(2), Cause::kTokenLimit);
    EXPECT_EQ(bench.came[2].text, "abc");
}

TEST(Engine, AStopStringEndsTheTextBeforeItAndHeldBackTextIsNeverLost) {
    Bench bench(TestBackend{});
    bench.backend.answers["p\n"] = "one STOP two";
    bench.backend.answers["q\n"] = "one STO";
    bench.submit(bench.ask(1, "p\n", {}, {"STOP"}));
    bench.submit(bench.ask(2, "q\n", {}, {"STOP"}));
    bench.submit(bench.ask(3, "p\n", 7, {"STOP"}));
    bench.run();
    EXPECT_EQ(bench.cause(1), Cause::kStopString);
    EXPECT_EQ(bench.came[1].text, "one ");
    EXPECT_EQ(bench.cause(2), Cause::kNaturalEnd);
    EXPECT_EQ(bench.came[2].text, "one STO");
    EXPECT_EQ(bench.cause(3), Cause::kTokenLimit);
    EXPECT_EQ(bench.came[3].text, "one STO");
}

TEST(Engine, APromptThatCannotFitIsRefusedWithTheNumbers) {
    Bench bench(TestBackend{Tokens{32}});
    bench.submit(bench.ask(1, std::string(40, 'p') + "\n"));
    bench.submit(bench.ask(2, "pp\n", 30));
    bench.submit(bench.ask(3, ""));
    for (const SequenceId id : {1U, 2U, 3U}) EXPECT_EQ(bench.cause(id), Cause::kRequestRejected);
    EXPECT_EQ(bench.came[1].code, "context_length_exceeded");
    EXPECT_NE(bench.came[1].end->detail.find("41 tokens"), std::string::npos)
        << bench.came[1].end->detail;
    EXPECT_NE(bench.came[2].end->detail.find("at most 29"), std::string::npos)
        << bench.came[2].end->detail;
    EXPECT_EQ(bench.came[3].code, "empty_prompt");
    EXPECT_EQ(bench.came[1].retry_after, std::nullopt) << "waiting would not help";
    EXPECT_TRUE(bench.engine.idle());
}

TEST(Engine, AFullQueueRefusesWithAnEstimateAndTakesAgainWhenThereIsRoom) {
    Bench bench(TestBackend{Tokens{64}, 1}, 2);
    bench.backend.answers["p\n"] = std::string(20, 'x');
    for (SequenceId id = 1; id <= 4; ++id) bench.submit(bench.ask(id, "p\n"));
    EXPECT_EQ(bench.cause(4), Cause::kAdmissionRejected);
    EXPECT_GE(bench.came[4].retry_after.value(), 1s);
    EXPECT_NE(bench.came[4].end->detail.find("2 requests are waiting"), std::string::npos)
        << bench.came[4].end->detail;
    EXPECT_EQ(bench.engine.occupancy().waiting, 2);
    bench.run();
    bench.submit(bench.ask(5, "p\n"));
    bench.run();
    for (const SequenceId id : {1U, 2U, 3U, 5U}) EXPECT_EQ(bench.cause(id), Cause::kNaturalEnd);
}

TEST(Engine, WithoutAQueueFreeSlotsStillTakeABurst) {
    Bench bench(TestBackend{Tokens{64}, 4}, 0);
    for (SequenceId id = 1; id <= 5; ++id) bench.submit(bench.ask(id, fmt::format("{}\n", id)));
    bench.run();
    for (SequenceId id = 1; id <= 4; ++id) EXPECT_EQ(bench.cause(id), Cause::kNaturalEnd);
    EXPECT_EQ(bench.cause(5), Cause::kAdmissionRejected);
}

TEST(Engine, NobodyPassesTheHeadOfTheQueue) {
    Bench bench(TestBackend{Tokens{64}, 8, Tokens{96}});
    bench.backend.answers["p\n"] = std::string(200, 'x');
    bench.submit(bench.ask(1, "p\n", 60));
    bench.submit(bench.ask(2, "p\n", 60));  // does not fit beside the first
    bench.submit(bench.ask(3, "p\n", 5));   // would
    EXPECT_EQ(bench.admitted, std::vector<SequenceId>{1});
    bench.run();
    EXPECT_EQ(bench.admitted, (std::vector<SequenceId>{1, 2, 3}));
}

TEST(Engine, DecodesComeFirstAndPromptsGetWhatIsLeft) {
    Bench bench(TestBackend{Tokens{1024}, 4});
    bench.backend.answers["p\n"] = std::string(50, 'x');
    bench.submit(bench.ask(1, "p\n"));
    bench.step();
    bench.submit(bench.ask(2, std::string(150, 'q') + "\n", 5));
    bench.backend.rows_of_steps.clear();
    const int before = bench.came[1].tokens;
    for (int i = 0; i < 3; ++i) bench.step();
    EXPECT_EQ(bench.came[1].tokens, before + 3) << "a long prompt does not hold up running answers";
    EXPECT_EQ(bench.backend.rows_of_steps, (std::vector<std::size_t>{65, 65, 24}));
    bench.run();
    bench.submit(bench.ask(3, std::string(300, 'r') + "\n", 5));
    bench.backend.rows_of_steps.clear();
    bench.step();
    EXPECT_EQ(bench.backend.rows_of_steps, (std::vector<std::size_t>{256}))
        << "alone, a prompt takes larger steps";
    bench.run();
}

TEST(Engine, AClientThatLeavesFreesItsBlocksAtOnceWhereverItIs) {
    Bench bench(TestBackend{Tokens{128}, 1});
    bench.backend.answers["p\n"] = std::string(50, 'x');
    bench.submit(bench.ask(1, "p\n"));
    bench.submit(bench.ask(2, "p\n"));
    for (int i = 0; i < 5; ++i) bench.step();
    bench.cancel(2);
    EXPECT_EQ(bench.engine.occupancy().waiting, 0);
    bench.cancel(1);
    EXPECT_EQ(bench.backend.cells(), 0);
    EXPECT_EQ(bench.engine.pool().free(), bench.engine.pool().total());
    EXPECT_EQ(bench.cause(1), Cause::kClientCancelled);
    EXPECT_EQ(bench.came[1].end->numbers.output_tokens, Tokens{5});
    EXPECT_EQ(bench.came[2].end->numbers.queue, std::nullopt) << "it never ran";
    bench.cancel(1);
    bench.cancel(77);
    EXPECT_EQ(bench.came.size(), 2U) << "an unknown id is nobody";
}

TEST(Engine, AFailedComputationEndsTheAnswersOfThatStepHonestlyAndTheEngineGoesOn) {
    const std::map<DecodeStatus, Cause> expected = {
        {DecodeStatus::kFatal, Cause::kServerError},
        {DecodeStatus::kAborted, Cause::kAbortedByServer},
        {DecodeStatus::kNoRoom, Cause::kKvPoolExhausted}};
    for (const auto& [status, cause] : expected) {
        Bench bench(TestBackend{Tokens{128}, 2});
        bench.backend.answers["p\n"] = std::string(20, 'x');
        for (SequenceId id = 1; id <= 3; ++id) bench.submit(bench.ask(id, "p\n"));
        for (int i = 0; i < 4; ++i) bench.step();
        bench.backend.next_status = status;
        bench.run();
        EXPECT_EQ(bench.cause(1), cause);
        EXPECT_EQ(bench.cause(2), cause);
        EXPECT_EQ(bench.came[1].text, "xxxx") << "what had come stays";
        EXPECT_EQ(bench.cause(3), Cause::kNaturalEnd);
    }
}

TEST(Engine, AModelWithoutNumbersIsAnErrorAndNotAToken) {
    Bench bench(TestBackend{});
    bench.backend.no_numbers = true;
    bench.submit(bench.ask(1, "p\n"));
    bench.run();
    EXPECT_EQ(bench.cause(1), Cause::kServerError);
}

TEST(Engine, CancellingAllEndsEveryAnswerOnce) {
    Bench bench(TestBackend{Tokens{128}, 2});
    for (SequenceId id = 1; id <= 5; ++id)
        bench.submit(bench.ask(id, fmt::format("long {}\n", id)));
    bench.step();
    bench.engine.cancel_all(bench.now, Cause::kAbortedByServer, "down", bench.events);
    bench.read();
    EXPECT_FALSE(bench.step());
    EXPECT_EQ(bench.came.size(), 5U);
    bench.run();
}

/// Random requests, cancellations and failures: what each answer says must not depend on the
/// company it was in.
TEST(Engine, AnyScheduleGivesEveryAnswerTheSameTextAndATrueEnd) {
    EXPECT_TRUE(rc::check([] {
        const bool shared = *rc::gen::arbitrary<bool>();
        const auto window =
            16 * *rc::gen::inRange(3, 12);  // whole blocks, as the real backend gives them
        const auto slots = *rc::gen::inRange(1, 6);
        Bench bench(shared ? TestBackend{Tokens{window}, slots,
                                         Tokens{window + 16 + *rc::gen::inRange(0, 300)}}
                           : TestBackend{Tokens{window}, slots},
                    static_cast<std::size_t>(*rc::gen::inRange(0, 8)));
        std::map<SequenceId, std::pair<std::string, std::optional<std::int64_t>>> asked;
        std::map<SequenceId, bool> left;
        SequenceId next = 1;
        for (const int what : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100'000))) {
            if (what % 4 == 0) {
                const std::string prompt = std::string(static_cast<std::size_t>(what % 37), 'p') +
                                           fmt::format("{}\n", what % 11);
                std::optional<std::int64_t> limit;
                if (what % 3 != 0) limit = 1 + what % 50;
                asked[next] = {prompt, limit};
                bench.submit(bench.ask(next++, prompt, limit));
            } else if (what % 13 == 1 && next > 1) {
                const auto id = 1 + static_cast<SequenceId>(what) % (next - 1);
                left[id] |= bench.came[id].ends == 0;
                bench.cancel(id);
            } else {
                bench.step();
            }
        }
        bench.run();
        for (const auto& [id, ask] : asked) {
            const auto& came = bench.came.at(id);
            RC_ASSERT(came.ends == 1);
            const std::string whole = bench.backend.answer_to(ask.first);
            RC_ASSERT(whole.starts_with(came.text));
            switch (came.end->cause) {
                case Cause::kNaturalEnd: RC_ASSERT(came.text == whole); break;
                case Cause::kTokenLimit:
                    RC_ASSERT(std::ssize(came.text) == ask.second.value());
                    break;
                case Cause::kContextLimit:
                    RC_ASSERT(!ask.second &&
                              std::ssize(came.text) + std::ssize(ask.first) == window);
                    break;
                case Cause::kRequestRejected:
                    RC_ASSERT(std::ssize(ask.first) + ask.second.value_or(1) > window);
                    break;
                case Cause::kAdmissionRejected: RC_ASSERT(came.retry_after.has_value()); break;
                case Cause::kClientCancelled: RC_ASSERT(left[id]); break;
                default: RC_FAIL("an end that nothing explains");
            }
        }
    }));
}

}  // namespace
}  // namespace fullstop::engine
