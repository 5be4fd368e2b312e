// An answer that was promised a form: it keeps it through pauses and in company, ends honestly, or
// is refused before it waits.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "engine/test_host.h"

namespace fullstop::engine {
namespace {

using answer::Cause;
using base::Tokens;
using testing::HasSubstr;
using namespace std::chrono_literals;

struct Bound {
    explicit Bound(std::int64_t sequences = 2, std::optional<Tokens> pool = {},
                   base::Bytes host = kDefaultHostMemory)
        : backend(Tokens{128}, sequences, pool),
          engine(backend,
                 {.max_queue = 100, .admission = AdmissionMode::kEager, .host_memory = host}) {}

    void ask(SequenceId id, const std::string& prompt, const std::string& grammar,
             std::int64_t max_tokens = 60) {
        engine.submit(now += 1ms,
                      {.id = id,
                       .arrived = now,
                       .prompt = prompt,
                       .sampling = {.temperature = 0.8, .seed = id},
                       .max_tokens = Tokens{max_tokens},
                       .grammar = grammar.empty() ? std::nullopt
                                                  : std::optional("root ::= \"" + grammar + "\"")},
                      events);
        read();
    }
    void run() {
        while (engine.plan(now += 1ms, events)) {
            engine.compute();
            engine.commit(now += 1ms, events);
            read();
        }
        read();
    }
    void read() {
        for (const EngineEvent& event : std::exchange(events, {})) {
            if (const auto* produced = std::get_if<Produced>(&event))
                texts[produced->id] += produced->text;
            if (const auto* ended = std::get_if<Ended>(&event))
                texts[ended->id] += ended->text, ends[ended->id] = ended->end;
            if (const auto* refused = std::get_if<Refused>(&event))
                ends[refused->id] = refused->end;
        }
    }

    TestBackend backend;
    Engine engine;
    base::Instant now{};
    EngineEvents events;
    std::map<SequenceId, std::string> texts;
    std::map<SequenceId, AnswerEnd> ends;
};

TEST(ResponseFormat, TheAnswerHasTheFormWhateverTheModelWantedAndEndsWhereItIsComplete) {
    Bound bound;
    bound.backend.answers["q\n"] = "no";
    bound.ask(1, "q\n", "yes?");
    bound.ask(2, "q\n", "");
    bound.run();
    EXPECT_THAT(bound.texts[1], testing::MatchesRegex("yes[a-z]"));
    EXPECT_EQ(bound.ends[1].cause, Cause::kNaturalEnd);
    EXPECT_EQ(bound.texts[2], "no") << "others are as they were";
}

TEST(ResponseFormat, ALimitCutsTheFormAndSaysSo) {
    Bound bound;
    bound.ask(1, "q\n", "abcdef", 4);
    bound.run();
    EXPECT_EQ(bound.texts[1], "abcd");
    EXPECT_EQ(bound.ends[1].cause, Cause::kTokenLimit);
}

TEST(ResponseFormat, WhereNoTokenIsAllowedTheAnswerEndsWithAnErrorThatSaysSo) {
    Bound bound;
    bound.backend.no_numbers = true;
    bound.ask(1, "q\n", "abc");
    bound.run();
    EXPECT_EQ(bound.ends[1].cause, Cause::kServerError);
    EXPECT_THAT(bound.ends[1].detail, HasSubstr("no token that the response format allows"));
}

/// Letters that the model did not want are drawn by seed, so a form that lost its place, or a
/// sampler that was asked once more, shows in the text.
TEST(ResponseFormat, PausesAndCompanyChangeNothing) {
    const std::string form = "{\"name\": \"??????????\", \"town\": \"????????????\"}";
    for (const base::Bytes host : {kDefaultHostMemory, base::Bytes{0}}) {
        std::map<SequenceId, std::string> alone;
        for (SequenceId id = 1; id <= 6; ++id) {
            Bound bound(4, Tokens{128}, host);
            bound.ask(id, fmt::format("q{}\n", id), id % 3 == 0 ? "" : form);
            bound.run();
            alone[id] = bound.texts[id];
        }
        Bound together(4, Tokens{128}, host);
        for (SequenceId id = 1; id <= 6; ++id)
            together.ask(id, fmt::format("q{}\n", id), id % 3 == 0 ? "" : form);
        together.run();
        EXPECT_EQ(together.texts, alone);
        EXPECT_NE(alone[1], alone[2]);
        const Occupancy occupancy = together.engine.occupancy();
        EXPECT_GT(host.count > 0 ? occupancy.swaps : occupancy.recomputes, 0) << "some were paused";
    }
}

TEST(ResponseFormat, WhatTheModelCannotBeHeldToIsA400BeforeTheAnswerWaits) {
    Host host;
    const auto id = host.chat(
        R"("response_format":{"type":"json_object"})");  // the test model reads one text only
    host.run();
    EXPECT_EQ(host.read(id).status, 400);
    const auto error = host.json_of(id).at("error");
    EXPECT_EQ(error.at("code"), "response_format");
    EXPECT_THAT(std::string(error.at("message").as_string()), HasSubstr("reads no such grammar"));
    EXPECT_EQ(host.engine.occupancy().waiting, 0);
}

TEST(ResponseFormat, AConstantSchemaIsTheWholeAnswerStreamedAndNot) {
    Host host;
    const std::string format =
        R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"const":7}}})";
    const auto whole = host.chat(format), streamed = host.chat(R"("stream":true,)" + format);
    for (Command& command : host.commands)
        std::get<Submission>(command).grammar = "root ::= \"7\"";  // as the test model reads it
    host.run();
    for (const auto id : {whole, streamed}) {
        const auto record = host.read(id);
        EXPECT_EQ(record.text, "7");
        EXPECT_EQ(record.end.reason, "stop");
        EXPECT_EQ(record.fullstop_cause, "natural_end");
    }
}

}  // namespace
}  // namespace fullstop::engine
