// The real model: texts that do not depend on company, cells that come back, and clear words for
// bad files.
#include "adapters/llama/backend.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "adapters/llama/places.h"
#include "base/random.h"
#include "engine/engine.h"
#include "tests/support/source_dir.h"

namespace fullstop::adapters::llama {
namespace {

using answer::Cause;
using base::Tokens;
using engine::SequenceId;

const std::filesystem::path kModel =
    tests::source_dir() / ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
const std::filesystem::path kSlidingWindowModel =
    tests::source_dir() / ".deps/models/gemma-3-270m.Q4_K_M.gguf";

TEST(Places, IdsInUseHaveNoHoles) {
    Places places;
    EXPECT_EQ(places.take(10), 0);
    EXPECT_EQ(places.take(11), 1);
    EXPECT_EQ(places.take(12), 2);
    EXPECT_EQ(places.take(11), 1);
    EXPECT_EQ(places.release(10), (Places::Move{.from = 2, .to = 0}));
    EXPECT_EQ(places.find(12), 0);
    EXPECT_EQ(places.find(10), std::nullopt);
    EXPECT_EQ(places.release(11), std::nullopt) << "the last one leaves no hole";
    EXPECT_EQ(places.used(), 1);
}

std::string trouble(LoadOptions options) {
    const auto loaded = load(options);
    return loaded ? std::string("loaded") : loaded.error().message + " | " + loaded.error().hint;
}

TEST(Loading, BadFilesAndSizesAreNamedWithTheNextStep) {
    const auto folder = std::filesystem::path(testing::TempDir());
    EXPECT_NE(trouble({.model = folder / "nowhere.gguf"}).find("there is no model file"),
              std::string::npos);
    EXPECT_NE(trouble({.model = folder}).find("is not a file"), std::string::npos);
    const auto text = folder / "notes.gguf";
    std::ofstream(text) << "not a model";
    EXPECT_NE(trouble({.model = text}).find("is not a GGUF file"), std::string::npos);
    std::ofstream(text, std::ios::trunc).close();
    EXPECT_NE(trouble({.model = text}).find("is not a GGUF file"), std::string::npos);

    const auto cut = folder / "cut.gguf";
    {
        std::ifstream whole(kModel, std::ios::binary);
        std::string start(20'000'000, '\0');
        whole.read(start.data(), static_cast<std::streamsize>(start.size()));
        std::ofstream(cut, std::ios::binary) << start;
    }
    const std::string cut_short = trouble({.model = cut});
    EXPECT_NE(cut_short.find("could not be loaded"), std::string::npos) << cut_short;
    EXPECT_NE(cut_short.find("file bounds"), std::string::npos)
        << "libllama's own reason is passed on: " << cut_short;
    std::filesystem::resize_file(cut, 4000);
    EXPECT_NE(trouble({.model = cut}).find("cut short"), std::string::npos)
        << "inside the metadata";
    std::filesystem::remove(cut);
    std::filesystem::remove(text);

    EXPECT_NE(trouble({.model = kModel, .layout = KvLayout::kStreams, .kv_tokens = Tokens{1000}})
                  .find("--kv-tokens 2048"),
              std::string::npos)
        << "8 windows of 256";
    EXPECT_NE(
        trouble(
            {.model = kModel, .layout = KvLayout::kUnified, .kv_tokens = Tokens{1'000'000'000'000}})
            .find("are available"),
        std::string::npos);
}

/// Answers of the real model, through the engine; time is a counter.
class Answers {
public:
    explicit Answers(const LoadOptions& options, const engine::EngineOptions& how = {})
        : backend_(load(options).value()), engine_(*backend_, how) {}

    void ask(SequenceId id, const std::string& question, double temperature,
             std::int64_t max_tokens, engine::Submission submission = {}) {
        submission.id = id;
        if (std::holds_alternative<std::string>(submission.prompt))
            submission.prompt = question;  // not as a chat
        else
            submission.prompt = std::vector<answer::Message>{{"user", question}};
        submission.sampling = {.temperature = temperature, .seed = 7};
        submission.max_tokens = Tokens{max_tokens};
        engine_.submit(now_, std::move(submission), events_);
        read();
    }
    bool step() {
        now_ += std::chrono::milliseconds(1);
        const bool more = engine_.plan(now_, events_);
        if (more) {
            engine_.compute();
            engine_.commit(now_, events_);
        }
        read();
        return more;
    }
    void run() {
        while (step()) {
        }
    }
    void cancel(SequenceId id) {
        engine_.cancel(now_, id, Cause::kClientCancelled, "", events_);
        read();
    }
    std::string alone(const std::string& question, double temperature, std::int64_t max_tokens,
                      engine::Submission submission = {}) {
        ask(1'000'000, question, temperature, max_tokens, std::move(submission));
        run();
        return take(1'000'000);
    }
    std::string take(SequenceId id) { return std::exchange(texts[id], {}); }

    std::map<SequenceId, std::string> texts;
    std::map<SequenceId, Cause> causes;
    std::map<SequenceId, engine::AnswerNumbers> numbers;
    engine::Occupancy occupancy() const { return engine_.occupancy(); }
    const engine::ModelFacts& facts() const { return backend_->facts(); }

private:
    void read() {
        for (const auto& event : std::exchange(events_, {})) {
            if (const auto* produced = std::get_if<engine::Produced>(&event))
                texts[produced->id] += produced->text;
            if (const auto* ended = std::get_if<engine::Ended>(&event)) {
                texts[ended->id] += ended->text;
                causes[ended->id] = ended->end.cause;
                numbers[ended->id] = ended->end.numbers;
            }
            EXPECT_FALSE(std::holds_alternative<engine::Refused>(event));
        }
    }
    std::unique_ptr<engine::Backend> backend_;
    engine::Engine engine_;
    base::Instant now_{};
    engine::EngineEvents events_;
};

const std::vector<std::string> kQuestions = {
    "List the eight planets of the solar system with one fact each.",
    "Why is the sky blue?",
    "Write a short story about a fox who learns to swim in a river that runs backwards, and tell "
    "what the other animals in the forest say about it.",
    "What is 2+2?",
};

/// From a client of its own, which reuses nothing of others.
engine::Submission fresh(SequenceId id) { return {.client = fmt::format("alone {}", id)}; }

LoadOptions eight(KvType type, KvLayout layout, Tokens pool) {
    return {
        .model = kModel, .kv_type = type, .layout = layout, .kv_tokens = pool, .max_sequences = 8};
}

/// Eight users, arriving one after the other, some leaving in mid-answer so that others move; four
/// are compared.
TEST(RealModel, AnAnswerIsTheSameAloneAndAmongSevenOthers) {
    Answers answers(eight(KvType::kQ8_0, KvLayout::kStreams, Tokens{8 * 256}));
    constexpr std::int64_t kTokens = 24;
    std::map<SequenceId, std::string> alone;
    for (SequenceId id = 0; id < 4; ++id)
        alone[id] = answers.alone(kQuestions[id], id % 2 == 0 ? 0.0 : 0.8, kTokens);
    for (SequenceId id = 4; id < 8; ++id)
        answers.ask(id, fmt::format("Tell me {} things about the number {}.", id, id * 17), 0.8,
                    100);
    for (SequenceId id = 0; id < 4; ++id) {
        for (int i = 0; i < 3; ++i) answers.step();
        answers.ask(id, kQuestions[id], id % 2 == 0 ? 0.0 : 0.8, kTokens);
    }
    for (int i = 0; i < 5; ++i) answers.step();
    answers.cancel(5);
    answers.step();
    answers.cancel(4);
    answers.run();
    for (SequenceId id = 0; id < 4; ++id) {
        EXPECT_GT(alone[id].size(), 5U);
        EXPECT_EQ(answers.texts[id], alone[id]) << "question " << id;
    }
}

/// Of the last of `count` tokens computed from `from` on.
std::vector<float> logits_of(engine::Backend& backend, SequenceId id,
                             std::span<const engine::TokenId> all, std::size_t from,
                             std::size_t count) {
    const engine::Run run{.sequence = id,
                          .position = {static_cast<std::int64_t>(from)},
                          .tokens = all.subspan(from, count),
                          .wants_logits = true};
    EXPECT_EQ(backend.decode(std::array{run}), engine::DecodeStatus::kOk);
    const auto row = backend.logits(0);
    return {row.begin(), row.end()};
}

/// Three that share beginnings of different lengths, while others come and go until the pool was
/// cleared and filled again; then the one whose cells they were leaves, and it happens once more.
TEST(RealModel, SharedBeginningsSurviveTheClearingOfThePool) {
    auto backend = load(eight(KvType::kQ8_0, KvLayout::kUnified, Tokens{256})).value();
    ASSERT_TRUE(backend->facts().shares);
    const auto tokens =
        backend->tokenize(kQuestions[2] + " " + kQuestions[0] + " " + kQuestions[1]).tokens;
    const auto other = backend->tokenize(kQuestions[2]).tokens;
    const std::size_t last = tokens.size() - 2, all = 32, some = 16;
    ASSERT_GT(last, all + 8);
    logits_of(*backend, 1, tokens, 0, last);
    const auto expected = logits_of(*backend, 1, tokens, last, 1);
    backend->remove(1);

    logits_of(*backend, 2, tokens, 0, last);
    backend->share(2, 3, Tokens{static_cast<std::int64_t>(all)});
    backend->share(3, 4, Tokens{static_cast<std::int64_t>(some)});
    backend->share(4, 5, Tokens{static_cast<std::int64_t>(some)});
    logits_of(*backend, 3, tokens, all, last - all);
    logits_of(*backend, 4, tokens, some, last - some);
    for (const SequenceId leaves : {SequenceId{2}, SequenceId{3}}) {
        for (SequenceId id = 10; id < 28; ++id) {  // far more cells than there are
            logits_of(*backend, id, other, 0, other.size());
            backend->remove(id);
        }
        backend->remove(leaves);
    }
    EXPECT_EQ(logits_of(*backend, 4, tokens, last, 1), expected);
    logits_of(*backend, 5, tokens, some, last - some);
    EXPECT_EQ(logits_of(*backend, 5, tokens, last, 1), expected)
        << "which held nothing but what it shared";
    const Tokens begun{static_cast<std::int64_t>(some)},
        rest{static_cast<std::int64_t>(last - some) + 1};
    const auto tail = backend->snapshot(5, begun);
    EXPECT_LT(tail.size(), backend->snapshot(5, {}).size());
    backend->share(4, 6, begun);
    ASSERT_TRUE(backend->append(6, rest, tail));
    EXPECT_EQ(logits_of(*backend, 6, tokens, last + 1, 1),
              logits_of(*backend, 5, tokens, last + 1, 1))
        << "shared, and the rest from a copy";
    backend->remove(6);
    const auto saved = backend->snapshot(5, {});
    backend->remove(4);
    backend->remove(5);
    const Tokens length{static_cast<std::int64_t>(last) + 2};
    ASSERT_TRUE(backend->restore(6, length, Tokens{static_cast<std::int64_t>(last)}, saved))
        << "a copy holds what was shared, too";
    EXPECT_EQ(logits_of(*backend, 6, tokens, last, 1), expected);
}

/// An answer ends, so that the last one moves into its place; before anything is computed again the
/// moved one is copied out, and another is copied into the place it left. libllama moves streams
/// only with the next pass, which must reach neither.
TEST(RealModel, AMoveBetweenStreamsIsDoneBeforeTheNextCopyInOrOut) {
    auto backend = load(eight(KvType::kQ8_0, KvLayout::kStreams, Tokens{8 * 256})).value();
    const auto tokens = backend->tokenize(kQuestions[2]).tokens;
    const auto others = backend->tokenize(kQuestions[0]).tokens;
    const auto logits = [&](auto... what) { return logits_of(*backend, what...); };
    const std::size_t last = tokens.size() - 1;
    const Tokens length{static_cast<std::int64_t>(last)};
    logits(1, tokens, 0, last);
    const auto expected = logits(1, tokens, last, 1);
    backend->remove(1);

    logits(1, others, 0, others.size());
    logits(2, others, 0, others.size());
    const auto foreign = backend->snapshot(2, {});
    logits(3, tokens, 0, last);
    backend->remove(1);  // 3 moves into its place
    const auto saved = backend->snapshot(3, {});
    const Tokens all_others{std::ssize(others)};
    ASSERT_TRUE(backend->restore(4, all_others, all_others, foreign))
        << "into the place that 3 left";
    EXPECT_EQ(logits(3, tokens, last, 1), expected) << "what moved";
    ASSERT_TRUE(backend->restore(5, length, length, saved));
    EXPECT_EQ(logits(5, tokens, last, 1), expected) << "its copy";
}

/// A shared pool for one or two answers of eight: pauses by swap and by recompute, cells that are
/// freed and used again, users that leave. What is compared was paused, and reads as if it had been
/// alone.
TEST(RealModel, AnAnswerIsTheSameAlonePausedAndAmongSevenOthersInASharedPool) {
    std::map<SequenceId, std::string> before;
    for (const base::Bytes host : {engine::kDefaultHostMemory, base::Bytes{0}}) {
        Answers answers(eight(KvType::kQ8_0, KvLayout::kUnified, Tokens{256}),
                        {.admission = engine::AdmissionMode::kEager, .host_memory = host});
        EXPECT_EQ(answers.facts().load_invariant, "verified");
        constexpr std::int64_t kTokens = 60;
        std::map<SequenceId, std::string> alone;
        for (SequenceId id = 0; id < 4; ++id)
            alone[id] = answers.alone(kQuestions[id], id % 2 == 0 ? 0.0 : 0.8, kTokens);
        for (SequenceId id = 0; id < 4; ++id) {
            answers.ask(id, kQuestions[id], id % 2 == 0 ? 0.0 : 0.8, kTokens,
                        {.priority = engine::Priority::kBatch});  // the first to be paused
            for (int i = 0; i < 5; ++i) answers.step();
        }
        for (SequenceId id = 4; id < 8; ++id)
            answers.ask(id, fmt::format("Tell me {} things about the number {}.", id, id * 17), 0.8,
                        100);
        for (int i = 0; i < 20; ++i) answers.step();
        answers.cancel(5);
        for (int i = 0; i < 10; ++i) answers.step();
        answers.cancel(4);
        answers.run();
        int pauses = 0;
        for (SequenceId id = 0; id < 4; ++id) {
            pauses += answers.numbers[id].swaps + answers.numbers[id].recomputes;
            EXPECT_EQ(answers.texts[id], alone[id])
                << "question " << id << ", host memory " << host.count;
        }
        EXPECT_GT(pauses, 0);
        EXPECT_EQ(answers.occupancy().swaps > 0, host.count > 0);
        EXPECT_EQ(answers.occupancy().kv_used, Tokens{});
        EXPECT_EQ(answers.occupancy().host_used, answers.occupancy().host_prefixes);
        EXPECT_GT(answers.occupancy().reused.count, 0) << "the beginnings of its prompts";
        if (!before.empty()) EXPECT_EQ(alone, before) << "with and without what is reused";
        before = alone;
    }
}

/// Six answers to one long document, in a pool that could not hold it six times. Its cells are
/// computed by the first, which leaves in the middle; the others are paused, moved together and go
/// on.
TEST(RealModel, AnswersThatShareABeginningReadAsIfEachWereAlone) {
    const std::string document =
        "The lighthouse stood on a rock two miles from the shore. Its keeper wrote down the wind, "
        "the rain and every ship that passed, and in the "
        "evening he read his notes aloud to a cat that had come with the supply boat. In the third "
        "winter a letter came that was meant for another man. ";
    const std::vector<std::string> tails = {
        "What did the keeper do?",        "Who listened to him?", "Go on with the story.",
        "What came in the third winter?", "Name the place.",      "Write a poem about the cat."};
    Answers answers(eight(KvType::kQ8_0, KvLayout::kUnified, Tokens{512}),
                    {.admission = engine::AdmissionMode::kEager});
    EXPECT_EQ(answers.facts().load_invariant, "verified");
    constexpr std::int64_t kTokens = 60;
    std::map<SequenceId, std::string> alone;
    for (SequenceId id = 0; id < tails.size(); ++id)
        alone[id] =
            answers.alone(document + tails[id], id % 2 == 0 ? 0.0 : 0.8, kTokens, fresh(id));
    const auto reused = answers.occupancy().reused;
    for (SequenceId id = 0; id < tails.size(); ++id) {
        answers.ask(id, document + tails[id], id % 2 == 0 ? 0.0 : 0.8, kTokens,
                    {.client = "together"});
        answers.step();
    }
    std::int64_t most = 0, owned = 0;
    for (int i = 0; i < 30; ++i) {
        answers.step();
        most = std::max(most, answers.occupancy().running);
        owned = std::max(owned, answers.occupancy().kv_owned.count);
    }
    answers.cancel(0);
    answers.run();
    EXPECT_EQ(most, 6) << "at once, although each has more than "
                       << answers.numbers[1].prompt_tokens->count << " tokens";
    EXPECT_GT(answers.numbers[1].prompt_tokens->count * 6, 512);
    EXPECT_LE(owned, 512);
    EXPECT_GT(answers.occupancy().reused.count - reused.count, 3 * 80);
    for (SequenceId id = 1; id < tails.size(); ++id)
        EXPECT_EQ(answers.texts[id], alone[id]) << tails[id];
    EXPECT_EQ(answers.occupancy().kv_used, Tokens{});

    // In a pool for fewer of them, where pauses copy what is not shared.
    Answers tight(eight(KvType::kQ8_0, KvLayout::kUnified, Tokens{256}),
                  {.admission = engine::AdmissionMode::kEager});
    for (SequenceId id = 0; id < tails.size(); ++id)
        tight.ask(id, document + tails[id], id % 2 == 0 ? 0.0 : 0.8, kTokens,
                  {.client = "together"});
    tight.run();
    EXPECT_GT(tight.occupancy().swaps, 0);
    const double bytes_of_one = static_cast<double>(
        (tight.facts().kv_bytes_per_token * tight.numbers[1].prompt_tokens.value().count).count);
    EXPECT_LT(static_cast<double>(tight.occupancy().swapped_out.count) /
                  static_cast<double>(tight.occupancy().swaps),
              bytes_of_one);
    for (SequenceId id = 0; id < tails.size(); ++id)
        EXPECT_EQ(tight.texts[id], alone[id]) << tails[id];
}

/// Alone, and paused by an interactive one that took its place: in streams, where nothing else
/// changes.
void expect_the_same_after_a_pause(const LoadOptions& options, const engine::Submission& how,
                                   const std::string& question, int steps) {
    Answers answers(options);
    engine::Submission batch = how;
    batch.priority = engine::Priority::kBatch;
    const std::string alone = answers.alone(question, 0, 40, batch);
    answers.ask(1, question, 0, 40, batch);
    answers.ask(2, kQuestions[0], 0, 40, how);
    for (int i = 0; i < steps; ++i) answers.step();
    engine::Submission urgent = how;
    urgent.priority = engine::Priority::kInteractive;
    answers.ask(3, kQuestions[1], 0, 40, urgent);
    answers.run();
    EXPECT_EQ(answers.numbers[1].swaps, 1);
    EXPECT_GT(alone.size(), 20U);
    EXPECT_EQ(answers.texts[1], alone);
    for (SequenceId id = 1; id <= 3; ++id)
        EXPECT_TRUE(answers.causes[id] == Cause::kNaturalEnd ||
                    answers.causes[id] == Cause::kTokenLimit);
}

TEST(RealModel, AnAnswerIsTheSameAfterAnInteractiveOneTookItsPlace) {
    expect_the_same_after_a_pause({.model = kModel,
                                   .layout = KvLayout::kStreams,
                                   .kv_tokens = Tokens{2 * 256},
                                   .max_sequences = 2},
                                  {}, kQuestions[2], 20);
}

/// Gemma 3 looks back 512 tokens in most layers; its prompt here is longer than that.
TEST(SlidingWindowModel, AnAnswerBeyondTheWindowIsTheSameAfterAPause) {
    std::string question = "Count:";
    for (int i = 1; i <= 200; ++i) question += fmt::format(" {},", i);
    engine::Submission plain;
    plain.prompt = std::string("plain");
    expect_the_same_after_a_pause({.model = kSlidingWindowModel,
                                   .layout = KvLayout::kStreams,
                                   .kv_tokens = Tokens{2 * 1280},
                                   .max_sequences = 2},
                                  plain, question, 12);
}

/// Behind the window its layers forget, in a copy and in the pool: a beginning taken from a long
/// answer would lack what the next token attends to.
TEST(SlidingWindowModel, ABeginningOfALongAnswerIsNotReused) {
    for (const KvLayout layout : {KvLayout::kStreams, KvLayout::kUnified}) {
        auto backend = load({.model = kSlidingWindowModel,
                             .layout = layout,
                             .kv_tokens = Tokens{2 * 768},
                             .max_sequences = 2})
                           .value();
        EXPECT_FALSE(backend->facts().shares);
        const auto tokens =
            std::vector<engine::TokenId>(700, backend->tokenize("fox").tokens.back());
        constexpr std::size_t kBeginning = 90;
        const Tokens beginning{kBeginning};
        logits_of(*backend, 1, tokens, 0, kBeginning);
        const auto expected = logits_of(*backend, 1, tokens, kBeginning, 1);
        backend->remove(1);
        for (const std::size_t length : {500U, 700U}) {
            logits_of(*backend, 1, tokens, 0, kBeginning);
            for (std::size_t at = kBeginning, piece = (length - kBeginning) / 10; at < length;
                 at += piece)
                logits_of(*backend, 1, tokens, at, piece);
            const auto copy = backend->snapshot(1, {});
            backend->remove(1);
            const bool reused =
                backend->restore(2, Tokens{static_cast<std::int64_t>(length)}, beginning, copy);
            EXPECT_EQ(reused, length == 500) << "nothing of 500 lies behind the window of 512";
            if (reused) EXPECT_EQ(logits_of(*backend, 2, tokens, kBeginning, 1), expected);
            backend->remove(2);
        }
    }
}

TEST(Loading, TheLayoutThatSuitsIsChosen) {
    const auto layout = [](std::int64_t tokens) {
        return load({.model = kModel,
                     .kv_tokens = Tokens{tokens},
                     .auto_window = Tokens{1024},
                     .max_sequences = 2})
            .value()
            ->facts()
            .layout;
    };
    EXPECT_EQ(layout(2048), KvLayout::kStreams) << "two windows of 1024 fit";
    EXPECT_EQ(layout(2047), KvLayout::kUnified);
}

TEST(RealModel, GreedyTextIsStableAndFollowsTheTemplate) {
    Answers answers(eight(KvType::kQ8_0, KvLayout::kStreams, Tokens{8 * 256}));
    const std::string first =
        answers.alone("What is the capital of France? Answer in one short sentence.", 0, 40);
    EXPECT_NE(first.find("Paris"), std::string::npos) << first;
    EXPECT_EQ(answers.causes[1'000'000], Cause::kNaturalEnd) << first;
    EXPECT_EQ(first.find("<|im_end|>"), std::string::npos) << "control tokens are not text";
    EXPECT_EQ(answers.alone("What is the capital of France? Answer in one short sentence.", 0, 40),
              first);
}

TEST(RealModel, CancellingFreesEveryCellSoThatTheWholePoolCanBeUsedAgain) {
    for (const auto layout : {KvLayout::kStreams, KvLayout::kUnified}) {
        Answers answers(
            {.model = kModel, .layout = layout, .kv_tokens = Tokens{2 * 256}, .max_sequences = 2});
        for (SequenceId round = 0; round < 2; ++round) {
            answers.ask(2 * round, kQuestions[2], 0, 150);
            answers.ask(2 * round + 1, kQuestions[0], 0, 150);
            for (int i = 0; i < 8; ++i) answers.step();
            EXPECT_GT(answers.occupancy().kv_used.count, 60);
            answers.cancel(2 * round);
            answers.step();
            answers.cancel(2 * round + 1);
            EXPECT_EQ(answers.occupancy().kv_used.count, 0);
        }
        answers.ask(100, kQuestions[2], 0.9, 100);
        answers.run();
        EXPECT_NE(answers.causes[100], Cause::kKvPoolExhausted)
            << "libllama found room for all that was accounted as free";
    }
}

/// Clients come and leave at random: waiting, with half a prompt, in mid-answer, paused. Somebody
/// who stays notices nothing, and afterwards everything is free.
void expect_nothing_is_left_of_a_storm(const LoadOptions& options, base::Bytes host_memory) {
    constexpr SequenceId kBystander = 1'000'000'000;
    constexpr std::int64_t kTokens = 24;
    const char* asked = std::getenv("FULLSTOP_STORM");  // clients; 100 take a minute
    const SequenceId clients = asked == nullptr ? 24 : std::stoul(asked);
    Answers answers(options,
                    {.admission = engine::AdmissionMode::kEager, .host_memory = host_memory});
    ASSERT_EQ(answers.facts().load_invariant, "verified");
    const std::string alone = answers.alone(kQuestions[1], 0.8, kTokens);
    answers.ask(kBystander, kQuestions[1], 0.8, kTokens, {.priority = engine::Priority::kBatch});
    base::Random random(11);
    std::vector<std::pair<SequenceId, int>> here;  // who is here, and for how many more steps
    for (SequenceId next = 0; next < clients || !here.empty();) {
        for (auto come = random.below(6); come > 0 && next < clients; --come) {
            answers.ask(next, fmt::format("{} ({})", kQuestions[next % 2 == 0 ? 1 : 3], next), 0.8,
                        100,

                        {.prompt = std::string("as it is"),
                         .priority = static_cast<engine::Priority>(random.below(3))});
            here.emplace_back(next++, static_cast<int>(random.below(6)));
        }
        for (auto& [id, left] : here)
            if (left-- == 0) answers.cancel(id);
        std::erase_if(here, [](const auto& client) { return client.second < 0; });
        answers.step();
    }
    answers.run();
    EXPECT_EQ(answers.texts[kBystander], alone) << "paused " << answers.numbers[kBystander].swaps
                                                << " + " << answers.numbers[kBystander].recomputes;
    int left = 0;
    for (SequenceId id = 0; id < clients; ++id)
        left += answers.causes.at(id) == Cause::kClientCancelled ? 1 : 0;
    EXPECT_GT(left, static_cast<int>(clients) * 3 / 4) << "a few may have ended before";
    const engine::Occupancy after = answers.occupancy();
    EXPECT_EQ(
        std::tuple(after.running, after.waiting, after.kv_used.count, after.kv_reserved.count),
        std::tuple(0, 0, 0, 0));
    EXPECT_EQ(after.host_used, after.host_prefixes)
        << "no snapshot is left but those kept on purpose";
    if (host_memory.count == 0) EXPECT_EQ(after.host_used.count, 0);
    for (SequenceId id = clients; id < clients + 8; ++id)
        answers.ask(id, kQuestions[3], 0.8, 4, {.prompt = std::string("as it is")});
    answers.run();
    for (SequenceId id = clients; id < clients + 8; ++id)
        EXPECT_TRUE(answers.causes.at(id) == Cause::kNaturalEnd ||
                    answers.causes.at(id) == Cause::kTokenLimit);
    fmt::print(
        "  {} left, {} steps, bystander paused {} times, {} swaps and {} recomputes in all\n", left,
        after.steps, answers.numbers[kBystander].swaps + answers.numbers[kBystander].recomputes,
        after.swaps, after.recomputes);
}

TEST(RealModel, NothingIsLeftOfAStormOfClientsThatLeave) {
    expect_nothing_is_left_of_a_storm(eight(KvType::kQ8_0, KvLayout::kStreams, Tokens{8 * 256}),
                                      engine::kDefaultHostMemory);
    expect_nothing_is_left_of_a_storm(eight(KvType::kQ8_0, KvLayout::kUnified, Tokens{256}),
                                      engine::kDefaultHostMemory);
    expect_nothing_is_left_of_a_storm(eight(KvType::kQ8_0, KvLayout::kUnified, Tokens{256}),
                                      base::Bytes{0});
}

TEST(RealModel, AOneTokenPromptAndF16AreServedToo) {
    auto backend = load(eight(KvType::kF16, KvLayout::kStreams, Tokens{8 * 256})).value();
    EXPECT_EQ(backend->facts().kv_bytes_per_token, base::Bytes{30 * 2 * 192 * 2})
        << "30 layers, keys and values, 3 heads of 64, 2 bytes";
    engine::Engine engine(*backend, {});
    engine::EngineEvents events;
    engine::Submission submission;
    submission.id = 1;
    submission.prompt = std::string("Hello");
    submission.sampling.temperature = 0;
    submission.max_tokens = Tokens{3};
    ASSERT_EQ(backend->tokenize("Hello").tokens.size(), 1U);
    engine.submit({}, submission, events);
    while (engine.plan({}, events)) {
        engine.compute();
        engine.commit({}, events);
    }
    const auto& end = std::get<engine::Ended>(events.back()).end;
    EXPECT_EQ(end.cause, Cause::kTokenLimit);
    EXPECT_EQ(end.numbers.output_tokens, Tokens{3});
}

}  // namespace
}  // namespace fullstop::adapters::llama
