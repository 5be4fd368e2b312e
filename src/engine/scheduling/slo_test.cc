// Targets for first tokens: only load is held against a request, and what is refused is told when
// to come again.
#include "engine/scheduling/slo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "engine/engine.h"
#include "engine/openai/openai_response.h"
#include "engine/test_backend.h"

namespace fullstop::engine {
namespace {

using base::Duration;
using base::Tokens;
using namespace std::chrono_literals;
using testing::HasSubstr;

/// A machine whose steps take 10 ms and 1 ms for each row.
CostModel known() {
    std::vector<CostPoint> points;
    for (const std::int64_t rows : {1, 2, 4, 8, 16, 32, 63, 64, 128, 256})
        for (const std::int64_t outputs : {1, 2}) {
            PassShape pass = rows_at(Tokens{0}, rows, true);
            pass.outputs = std::min(outputs, rows);
            points.push_back({.pass = pass, .ms = 10 + static_cast<double>(rows)});
        }
    return CostModel::fit(std::move(points)).value();
}

struct Targeted {
    explicit Targeted(SloPolicy policy, std::optional<CostModel> cost = known(),
                      Duration target = 500ms)
        : backend(Tokens{1024}, 4, Tokens{4096}),
          engine(backend, {.ttft_target = target, .slo_policy = policy, .cost = std::move(cost)}) {}

    void ask(SequenceId id, std::int64_t prompt, std::int64_t output,
             Priority priority = Priority::kNormal, std::int64_t shared = 0) {
        const std::string text = std::string(static_cast<std::size_t>(shared), 's') +
                                 std::string(static_cast<std::size_t>(prompt - shared) - 1,
                                             static_cast<char>('a' + id % 26)) +
                                 "\n";
        backend.answers[text] = std::string(static_cast<std::size_t>(output) + 10, 'x');
        engine.submit(now,
                      {.id = id,
                       .arrived = now,
                       .prompt = text,
                       .sampling = {.temperature = 0},
                       .max_tokens = Tokens{output},
                       .priority = priority},
                      events);
        read();
    }
    bool step() {
        if (!engine.plan(now, events)) return false;
        engine.compute();
        now +=
            std::chrono::milliseconds(10 + static_cast<std::int64_t>(backend.rows_of_steps.back()));
        engine.commit(now, events);
        read();
        return true;
    }
    void run() {
        while (step()) {
        }
    }
    void read() {
        for (const EngineEvent& event : std::exchange(events, {})) {
            if (const auto* refused = std::get_if<Refused>(&event))
                refusals.emplace(refused->id, *refused);
            if (const auto* ended = std::get_if<Ended>(&event)) ends.emplace(ended->id, ended->end);
        }
    }

    TestBackend backend;
    Engine engine;
    base::Instant now{};
    EngineEvents events;
    std::map<SequenceId, Refused> refusals;
    std::map<SequenceId, AnswerEnd> ends;
};

TEST(Slo, AnIdleServerRefusesNobodyNotEvenWhoWillMissTheTarget) {
    Targeted host(SloPolicy::kRejectEarly);
    for (SequenceId id = 1; id <= 20; ++id) {
        host.ask(id, 10 + 50 * static_cast<std::int64_t>(id % 18),
                 5);  // up to 860 rows: 900 ms alone
        host.run();
    }
    EXPECT_TRUE(host.refusals.empty());
    EXPECT_EQ(host.ends.size(), 20U);
    EXPECT_FALSE(host.ends.at(17).numbers.ttft_met.value())
        << "860 tokens take longer than the target, and waiting would not help";
    EXPECT_TRUE(host.ends.at(1).numbers.ttft_met.value());
}

TEST(Slo, WhoWouldWaitTooLongIsRefusedAtOnceWithTheEstimateAndServedWhenTheLoadIsGone) {
    Targeted host(SloPolicy::kRejectEarly);
    for (SequenceId id = 1; id <= 4; ++id)
        host.ask(id, 20, 300);  // all places, for 300 steps of 14 ms
    ASSERT_TRUE(host.refusals.empty());
    for (int i = 0; i < 5; ++i) host.step();
    host.ask(5, 20, 10);
    ASSERT_TRUE(host.refusals.contains(5));
    const Refused& refused = host.refusals.at(5);
    EXPECT_EQ(refused.code, "ttft_target");
    EXPECT_EQ(refused.end.cause, answer::Cause::kAdmissionRejected);
    EXPECT_THAT(refused.end.detail, AllOf(HasSubstr("and the target is 0.5 s"),
                                          HasSubstr("4 answers are running and 0 requests wait")));
    const Duration before = refused.retry_after.value();
    EXPECT_GT(before, 1s);
    EXPECT_LT(before, 5s);
    EXPECT_EQ(host.engine.occupancy().rejected_early, 1);
    for (int i = 0; i < 285; ++i) host.step();  // ten tokens from their ends
    host.ask(6, 20, 10);
    EXPECT_FALSE(host.refusals.contains(6)) << "what counts is the moment when its turn comes";
    host.run();
    EXPECT_TRUE(host.ends.at(6).numbers.ttft_met.value());
    EXPECT_EQ(host.ends.size(), 5U);
}

TEST(Slo, TheQueueAheadCounts) {
    Targeted host(SloPolicy::kIgnore);
    for (SequenceId id = 1; id <= 12; ++id) host.ask(id, 100, 50);
    host.run();
    ASSERT_EQ(host.ends.size(), 12U);
    Duration last{};
    for (SequenceId id = 1; id <= 12; ++id) {
        const AnswerNumbers& numbers = host.ends.at(id).numbers;
        EXPECT_GE(*numbers.ttft_estimate, last) << "who comes later waits longer";
        last = *numbers.ttft_estimate;
    }
    EXPECT_NEAR(base::to_ms(last) / base::to_ms(*host.ends.at(12).numbers.ttft), 1, 0.35);
}

TEST(Slo, ABeginningThatOthersComputeIsNotCountedAgain) {
    Targeted host(SloPolicy::kIgnore);
    for (SequenceId id = 20; id <= 31; ++id) host.ask(id, 400, 20, Priority::kNormal, 384);
    host.run();
    ASSERT_EQ(host.ends.size(), 12U);
    const AnswerNumbers &first = host.ends.at(20).numbers, &last = host.ends.at(31).numbers;
    EXPECT_NEAR(base::to_ms(*first.ttft_estimate) / base::to_ms(*first.ttft), 1, 0.35);
    EXPECT_NEAR(base::to_ms(*last.ttft_estimate) / base::to_ms(*last.ttft), 1, 0.35);
}

TEST(Slo, DemotedOnesStandOneClassLowerSaySoAndAreServed) {
    Targeted host(SloPolicy::kDemote);
    for (SequenceId id = 1; id <= 4; ++id) host.ask(id, 20, 200, Priority::kInteractive);
    host.ask(5, 20, 10, Priority::kInteractive);
    host.ask(6, 20, 10, Priority::kBatch);
    host.run();
    EXPECT_TRUE(host.refusals.empty());
    for (SequenceId id = 1; id <= 4; ++id) EXPECT_FALSE(host.ends.at(id).numbers.demoted);
    for (SequenceId id : {5U, 6U}) EXPECT_TRUE(host.ends.at(id).numbers.demoted);
    EXPECT_EQ(host.engine.occupancy().demoted, 2);
}

TEST(Slo, AnUrgentRequestThatMayPauseOthersIsNotRefusedForThem) {
    Targeted host(SloPolicy::kRejectEarly);
    for (SequenceId id = 1; id <= 4; ++id) host.ask(id, 20, 300, Priority::kBatch);
    host.step();
    host.ask(5, 20, 10, Priority::kInteractive);
    EXPECT_FALSE(host.refusals.contains(5));
    host.ask(6, 20, 10, Priority::kBatch);
    EXPECT_TRUE(host.refusals.contains(6));
    host.run();
    EXPECT_TRUE(host.ends.at(5).numbers.ttft_met.value());
}

TEST(Slo, WhenNothingIsKnownOfCostsNobodyIsRefused) {
    Targeted host(SloPolicy::kRejectEarly, std::nullopt);
    for (SequenceId id = 1; id <= 10; ++id) host.ask(id, 20, 100);
    host.run();
    EXPECT_TRUE(host.refusals.empty());
    EXPECT_EQ(host.ends.at(1).numbers.ttft_estimate, std::nullopt);
    EXPECT_EQ(host.ends.at(10).numbers.ttft_met, false);
}

TEST(Slo, ARefusalIsA503ThatNamesTheTargetAndNotTheQueue) {
    const AnswerEnd end{
        answer::Cause::kAdmissionRejected, "its first token would come after about 9.0 s", {}};
    ErrorWords words = error_words(end);
    EXPECT_EQ(words.status, 503);
    words.code = kMissesTarget;
    const std::string body =
        error_body({.route = Route::kChat, .request_id = "r", .model = "m"}, end, words);
    EXPECT_THAT(body, AllOf(HasSubstr("not taken on: its first token"),
                            HasSubstr("\"code\":\"ttft_target\""), HasSubstr("\"demoted\":false")));
    EXPECT_EQ(body.find("queue was full"), std::string::npos);
}

TEST(Slo, WordsAreReadAndWritten) {
    for (const SloPolicy policy : {SloPolicy::kIgnore, SloPolicy::kDemote, SloPolicy::kRejectEarly})
        EXPECT_EQ(parse_slo_policy(to_string(policy)), policy);
    EXPECT_EQ(parse_slo_policy("reject"), std::nullopt);
}

}  // namespace
}  // namespace fullstop::engine
