// What ended serves as the beginning of what comes: the same texts, fewer rows, within its budget,
// and nobody else's.
#include "engine/scheduling/prefix_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "engine/engine.h"
#include "engine/limits.h"
#include "engine/test_backend.h"

namespace fullstop::engine {
namespace {

using base::Bytes;
using base::Tokens;
using namespace std::chrono_literals;

PrefixCache::Entry entry(const std::string& text, std::size_t bytes,
                         const std::string& client = "") {
    return {.client = client,
            .tokens = {text.begin(), text.end()},
            .snapshot = std::vector<std::byte>(bytes)};
}
PrefixCache::Match find(PrefixCache& cache, const std::string& text,
                        const std::string& client = "") {
    return cache.find(client, std::vector<TokenId>(text.begin(), text.end()));
}

const std::string kStart = "You are a helpful assistant. ";

TEST(PrefixCache, TheLongestCommonBeginningIsFoundAndShortOnesAreNot) {
    HostMemory host(Bytes{100});
    PrefixCache cache(host);
    cache.add(entry(kStart + "Why?", 10));
    cache.add(entry(kStart + "What is it?", 10));
    EXPECT_EQ(find(cache, kStart + "What else?").length, Tokens{std::ssize(kStart) + 5});
    EXPECT_EQ(find(cache, kStart + "Who?").length, Tokens{std::ssize(kStart) + 2});
    EXPECT_EQ(find(cache, "You are").entry, nullptr) << "fewer than are worth it";
    EXPECT_EQ(find(cache, kStart + "Why?", "somebody else").entry, nullptr);
}

TEST(PrefixCache, ALittleOfALongCopyIsNotWorthIt) {
    HostMemory host(Bytes{100});
    PrefixCache cache(host);
    cache.add(entry(kStart + std::string(1000, 'x'), 10));
    EXPECT_EQ(find(cache, kStart + "y").entry, nullptr);
}

TEST(PrefixCache, OfSeveralThatShareAsMuchTheShortestIsCopied) {
    for (const bool shortest_first : {true, false}) {
        HostMemory host(Bytes{100});
        PrefixCache cache(host);
        const std::string first = kStart + (shortest_first ? "a" : "bbbb"),
                          second = kStart + (shortest_first ? "bbbb" : "a");
        cache.add(entry(first, 10));
        cache.add(entry(second, 10));
        EXPECT_EQ(find(cache, kStart + "c").entry->tokens.size(), kStart.size() + 1);
    }
}

TEST(PrefixCache, TheNextTurnReplacesTheOneBefore) {
    HostMemory host(Bytes{100});
    PrefixCache cache(host);
    cache.add(entry(kStart, 10));
    cache.add(entry(kStart + "more", 20));
    EXPECT_EQ(cache.entries(), 1U);
    EXPECT_EQ(host.used(), Bytes{20});
    cache.add(entry(kStart, 10, "somebody else"));
    EXPECT_EQ(cache.entries(), 2U);
}

TEST(PrefixCache, TheOldestGoFirstAndWhatIsTooLargeIsNotKept) {
    HostMemory host(Bytes{100});
    PrefixCache cache(host);
    cache.add(entry("a" + kStart, 40));
    cache.add(entry("b" + kStart, 40));
    EXPECT_NE(find(cache, "a" + kStart).entry, nullptr) << "used, so it is the newest";
    cache.add(entry("c" + kStart, 40));
    EXPECT_EQ(find(cache, "b" + kStart).entry, nullptr);
    EXPECT_NE(find(cache, "a" + kStart).entry, nullptr);
    cache.add(entry("d" + kStart, 101));
    EXPECT_EQ(find(cache, "d" + kStart).entry, nullptr);
    cache.make_room(Bytes{100});
    EXPECT_EQ(host.used(), Bytes{});
}

struct Chat {
    explicit Chat(Bytes host = kDefaultHostMemory) : engine(backend, {.host_memory = host}) {}

    std::string ask(SequenceId id, const std::string& prompt, const std::string& client = "") {
        start(id, prompt, client);
        while (step()) {
        }
        return texts[id];
    }
    void start(SequenceId id, const std::string& prompt, const std::string& client = "") {
        engine.submit(
            now += 1ms,
            {.id = id, .prompt = prompt, .sampling = {.temperature = 0}, .client = client}, events);
    }
    bool step() {
        const bool more = engine.plan(now += 1ms, events);
        if (more) {
            engine.compute();
            engine.commit(now += 1ms, events);
        }
        for (const EngineEvent& event : std::exchange(events, {})) {
            if (const auto* produced = std::get_if<Produced>(&event))
                texts[produced->id] += produced->text;
            if (const auto* ended = std::get_if<Ended>(&event))
                texts[ended->id] += ended->text,
                    cached[ended->id] = ended->end.numbers.cached_tokens;
        }
        EXPECT_EQ(engine.occupancy().kv_used.count, backend.cells());
        return more;
    }
    std::size_t rows() const {
        return std::accumulate(backend.rows_of_steps.begin(), backend.rows_of_steps.end(),
                               std::size_t{0});
    }

    TestBackend backend{Tokens{256}, 4};
    Engine engine;
    base::Instant now{};
    EngineEvents events;
    std::map<SequenceId, std::string> texts;
    std::map<SequenceId, Tokens> cached;
};

TEST(PrefixReuse, TheNextTurnOfAChatComputesOnlyWhatIsNew) {
    Chat chat;
    chat.backend.answers["user: hello there my good friend\n"] = "hi";
    chat.backend.answers["user: hello there my good friend\nhi\nuser: bye\n"] = "farewell";
    EXPECT_EQ(chat.ask(1, "user: hello there my good friend\n"), "hi");
    const std::size_t before = chat.rows();
    EXPECT_EQ(chat.ask(2, "user: hello there my good friend\nhi\nuser: bye\n"), "farewell");
    EXPECT_EQ(chat.cached[1], Tokens{});
    EXPECT_EQ(chat.cached[2], Tokens{35}) << "the first prompt of 33 tokens and its answer of 2";
    EXPECT_EQ(chat.rows() - before, 11U + 8U) << "the new turn, and the answer";
    EXPECT_EQ(chat.engine.occupancy().reused, Tokens{35});
}

TEST(PrefixReuse, TheSamePromptComputesItsLastTokenOnly) {
    Chat chat;
    chat.backend.answers[kStart + "\n"] = "yes";
    chat.ask(1, kStart + "\n");
    EXPECT_EQ(chat.ask(2, kStart + "\n"), "yes");
    EXPECT_EQ(chat.cached[2], Tokens{std::ssize(kStart)});
}

TEST(PrefixReuse, AnAnswerThatStillRunsLendsItsBeginningToo) {
    Chat chat;
    chat.backend.answers[kStart + "a\n"] = std::string(50, 'a');
    chat.backend.answers[kStart + "b\n"] = std::string(50, 'b');
    chat.start(1, kStart + "a\n");
    for (int i = 0; i < 5; ++i) chat.step();
    EXPECT_EQ(chat.ask(2, kStart + "b\n"), std::string(50, 'b'));
    EXPECT_EQ(chat.texts[1], std::string(50, 'a'));
    EXPECT_EQ(chat.cached[2], Tokens{std::ssize(kStart)});
}

TEST(PrefixReuse, NothingIsLentToAnotherClientNorWithoutHostMemory) {
    Chat chat;
    chat.ask(1, kStart + "\n", "one");
    chat.ask(2, kStart + "\n", "two");
    EXPECT_EQ(chat.cached[2], Tokens{});
    Chat none(Bytes{0});
    none.ask(1, kStart + "\n");
    none.ask(2, kStart + "\n");
    EXPECT_EQ(none.cached[2], Tokens{});
}

TEST(PrefixReuse, ARestoreThatFailsComputesThePromptAsIfNothingWereKnown) {
    Chat chat;
    chat.backend.answers[kStart + "\n"] = "yes";
    chat.ask(1, kStart + "\n");
    chat.backend.fail_restores = 1;
    EXPECT_EQ(chat.ask(2, kStart + "\n"), "yes");
    EXPECT_EQ(chat.cached[2], Tokens{});
}

}  // namespace
}  // namespace fullstop::engine
