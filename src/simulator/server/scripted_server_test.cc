// Promises of the scripted model and server: whole texts satisfy their checks, every dialect reads
// back what was said, and each kind of end shows as the facts that it was made of.
#include "simulator/server/scripted_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "probe/schedule.h"
#include "simulator/plants/plants.h"
#include "simulator/server/introspection.h"
#include "simulator/world/virtual_world.h"
#include "wire/answer_reader.h"
#include "wire/http/request_text.h"

namespace fullstop::simulator {
namespace {

using answer::Transport;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<answer::Prompt> some_prompts() {
    std::vector<answer::Prompt> prompts(5);
    prompts[0] = {"list",
                  {{"user", "a"}},
                  {},
                  {.items = 8, .contains = {}, .json = false, .regex = {}, .ends_with = {}},
                  {}};
    prompts[1] = {"facts",
                  {{"user", "b"}},
                  {},
                  {.items = {},
                   .contains = {"Mercury", "the \"Red\" planet"},
                   .json = false,
                   .regex = {},
                   .ends_with = {}},
                  {}};
    prompts[2] = {
        "json",
        {{"system", "s"}, {"user", "c"}},
        {},
        {.items = {}, .contains = {"a \"quote\""}, .json = true, .regex = {}, .ends_with = {}},
        {}};
    prompts[3] = {"end",
                  {{"user", "d"}},
                  {},
                  {.items = {}, .contains = {}, .json = false, .regex = {}, .ends_with = "THE END"},
                  {}};
    prompts[4] = {
        "regex",
        {{"user", "e"}},
        {},
        {.items = {}, .contains = {}, .json = false, .regex = "[0-9]{4}", .ends_with = {}},
        {}};
    return prompts;
}

ServerScript script() {
    ServerScript script;
    script.prompts = some_prompts();
    script.regex_samples["regex"] = "2026";
    return script;
}

/// One user of the virtual world: sends one request and reads the answer.
class User final : public net::Part {
public:
    User(std::string text, base::Instant at = {})
        : text_(std::move(text)), at_(at), reader_(record) {}
    answer::Record record;

    void start(base::Instant now, net::Actions& out) override {
        begun_ = now;
        out.push_back(net::SetTimer{1, std::max(now, at_)});
    }
    void on(const net::Event& event, net::Actions& out) override {
        const auto at = event.at - begun_;
        if (std::holds_alternative<net::TimerFired>(event.what))
            out.push_back(net::Connect{1, {"server", 80, false}, seconds(1)});
        if (std::holds_alternative<net::Connected>(event.what)) out.push_back(net::Send{1, text_});
        if (const auto* received = std::get_if<net::Received>(&event.what))
            reader_.bytes(received->bytes, at, received->clock);
        if (const auto* closed = std::get_if<net::PeerClosed>(&event.what))
            finish(closed->kind == net::CloseKind::kFin ? wire::StreamEnd::Kind::kFin
                                                        : wire::StreamEnd::Kind::kRst,
                   at);
        if (std::holds_alternative<net::ConnectFailed>(event.what))
            finish(wire::StreamEnd::Kind::kUnknown, at);
    }
    bool done() const override { return done_; }

private:
    void finish(wire::StreamEnd::Kind kind, base::Duration at) {
        reader_.end({kind}, at);
        done_ = true;
    }
    std::string text_;
    base::Instant at_, begun_{};
    wire::AnswerReader reader_;
    bool done_ = false;
};

std::string ask(answer::Api api, const answer::Prompt& prompt, std::int64_t max_tokens = 1000,
                bool stream = true) {
    answer::Request request;
    request.id = "r1";
    request.api = api;
    request.model = "scripted-1";
    request.messages = prompt.messages;
    request.seed = 7;
    request.max_tokens = base::Tokens{max_tokens};
    request.stream = stream;
    return wire::request_text(request, *wire::parse_server_url("http://server"), {});
}

/// `users` ask the same at once; their records.
std::vector<answer::Record> together(ServerScript plan, std::vector<PlantPtr> plants, int users,
                                     const std::string& text, std::uint64_t seed = 3) {
    VirtualWorld world(seed);
    ScriptedServer server(std::move(plan), std::move(plants));
    world.serve("server", 80, server);
    std::vector<std::unique_ptr<User>> all;
    for (int i = 0; i < users; ++i) world.host(*all.emplace_back(std::make_unique<User>(text)));
    EXPECT_EQ(world.run(std::chrono::hours(1)), Outcome::kDone);
    std::vector<answer::Record> records;
    for (auto& user : all) records.push_back(std::move(user->record));
    return records;
}

std::vector<PlantPtr> one(PlantPtr plant) {
    std::vector<PlantPtr> plants;
    plants.push_back(std::move(plant));
    return plants;
}

answer::Record alone(ServerScript plan, const std::string& text, PlantPtr plant = nullptr) {
    return std::move(
        together(std::move(plan), plant ? one(std::move(plant)) : std::vector<PlantPtr>{}, 1, text)
            .front());
}

void expect_complete(const answer::Prompt& prompt, const std::string& text) {
    for (const auto& fact : prompt.check.contains)
        if (!prompt.check.json) EXPECT_THAT(text, ::testing::HasSubstr(fact)) << prompt.id;
    if (prompt.check.items)
        for (int i = 1; i <= *prompt.check.items; ++i)
            EXPECT_TRUE(std::regex_search(text, std::regex(fmt::format("(^|\n){}\\. [A-Z]", i))))
                << prompt.id << ": " << text;
    if (prompt.check.ends_with)
        EXPECT_THAT(text, ::testing::EndsWith(*prompt.check.ends_with)) << prompt.id;
    if (!prompt.check.json) return;
    boost::system::error_code error;
    const auto document = boost::json::parse(text, error);
    EXPECT_FALSE(error) << text;
    EXPECT_TRUE(document.is_object());
}

TEST(ScriptedModel, EveryWholeTextSatisfiesItsCheckWhetherItDivergedOrNot) {
    const auto plan = script();
    const ScriptedModel model(plan.prompts, 5, plan.lengths, plan.regex_samples);
    base::Random random(9);
    for (std::size_t prompt = 0; prompt < plan.prompts.size(); ++prompt)
        for (std::int64_t seed = 1; seed <= 20; ++seed) {
            expect_complete(plan.prompts[prompt], model.alone(prompt, seed).joined());
            expect_complete(plan.prompts[prompt],
                            model.diverged(prompt, seed, random.below(60), 0.5, random).joined());
        }
    EXPECT_THAT(model.alone(4, 1).joined(), ::testing::HasSubstr("2026"));
}

TEST(ScriptedModel, ADivergedTextKeepsItsBeginningAndGetsLongerAboutAsOftenAsShorter) {
    const auto plan = script();
    const ScriptedModel model(plan.prompts, 5, plan.lengths, plan.regex_samples);
    base::Random random(11);
    int longer = 0, shorter = 0;
    for (std::int64_t seed = 1; seed <= 400; ++seed) {
        const auto before = model.alone(3, seed);
        const auto at = random.below(before.tokens.size() / 2);
        const auto after = model.diverged(3, seed, at, 0.5, random);
        ASSERT_TRUE(std::equal(before.tokens.begin(),
                               before.tokens.begin() + static_cast<std::ptrdiff_t>(at),
                               after.tokens.begin()));
        longer += after.tokens.size() > before.tokens.size();
        shorter += after.tokens.size() < before.tokens.size();
    }
    EXPECT_GT(longer, 140);
    EXPECT_GT(shorter, 140);
}

TEST(ScriptedServer, SpeaksEveryDialectStreamedAndWholeAndCountsTruly) {
    const auto plan = script();
    const ScriptedModel model(plan.prompts, plan.seed, plan.lengths, plan.regex_samples);
    const auto said = model.alone(0, 7);
    for (const auto api :
         {answer::Api::kOpenAiChat, answer::Api::kOllama, answer::Api::kLlamaServer})
        for (const bool stream : {true, false}) {
            SCOPED_TRACE(fmt::format("{} stream {}", answer::to_string(api), stream));
            const auto record = alone(plan, ask(api, plan.prompts[0], 1000, stream));
            EXPECT_EQ(record.status, 200);
            EXPECT_EQ(record.text, said.joined());
            EXPECT_THAT(record.end.reason.value_or("none"), ::testing::AnyOf("stop", "eos"));
            EXPECT_TRUE(record.end.terminator);
            EXPECT_EQ(record.end.transport, Transport::kClean);
            EXPECT_FALSE(record.end.error);
            EXPECT_EQ(record.output_tokens.value.value_or(base::Tokens{-1}).count,
                      static_cast<std::int64_t>(said.tokens.size()));
            EXPECT_EQ(record.prompt_tokens.value.value_or(base::Tokens{-1}).count,
                      scripted_prompt_tokens(plan.prompts[0].messages));
            EXPECT_EQ(record.unread_events, 0);
        }
}

TEST(ScriptedServer, StopsAtTheLimitThatWasAskedForAndAtTheWindow) {
    auto plan = script();
    const auto limited = alone(plan, ask(answer::Api::kOpenAiChat, plan.prompts[0], 20));
    EXPECT_EQ(limited.end.reason, "length");
    EXPECT_EQ(limited.output_tokens.value.value_or(base::Tokens{}).count, 20);
    plan.window = 50;
    const auto windowed = alone(plan, ask(answer::Api::kLlamaServer, plan.prompts[0]));
    EXPECT_EQ(windowed.output_tokens.value.value_or(base::Tokens{}).count +
                  windowed.prompt_tokens.value.value_or(base::Tokens{}).count,
              50);
    EXPECT_EQ(windowed.stop_details.at("truncated"), "true");
}

TEST(ScriptedServer, ThinksAloudBeforeItAnswers) {
    auto plan = script();
    plan.thinking_tokens = 12;
    const auto record = alone(plan, ask(answer::Api::kOpenAiChat, plan.prompts[0]));
    EXPECT_FALSE(record.reasoning.empty());
    expect_complete(plan.prompts[0], record.text);
    EXPECT_EQ(record.reasoning_tokens.value.value_or(base::Tokens{}).count, 12);
}

TEST(ScriptedServer, GivesTheSameTextAloneAndTogetherUnlessItVaries) {
    auto plan = script();
    const auto text = ask(answer::Api::kOpenAiChat, plan.prompts[3]);
    const auto baseline = alone(plan, text).text;
    for (const auto& record : together(plan, {}, 8, text)) EXPECT_EQ(record.text, baseline);
    plan.variance.at_load = 1;
    int other = 0;
    for (const auto& record : together(plan, {}, 8, text)) {
        other += record.text != baseline;
        EXPECT_EQ(record.end.reason, "stop");
    }
    EXPECT_EQ(other, 8);
}

TEST(ScriptedServer, QueuesWhatItsSlotsCannotHold) {
    auto plan = script();
    plan.slots = 2;
    plan.timing.jitter = 0;
    auto records = together(plan, {}, 6, ask(answer::Api::kOpenAiChat, plan.prompts[0]));
    std::vector<base::Duration> first;
    for (const auto& record : records) first.push_back(*record.timeline.first_token);
    std::ranges::sort(first);
    EXPECT_LT(first[1], milliseconds(200));
    EXPECT_GT(first[2], milliseconds(500)) << "the third waits for a slot";
}

TEST(ScriptedServer, EndsAsItWasTold) {
    const auto plan = script();
    const auto text = ask(answer::Api::kOpenAiChat, plan.prompts[0]);
    const auto cut = [&](Ending ending) {
        return alone(plan, text, cut_some(1, 1, std::move(ending)));
    };

    answer::ServerError error;
    error.status = 500;
    error.type = "server_error";
    error.text = "Context size has been exceeded.";
    const auto in_band = cut(error_ending(error));
    ASSERT_TRUE(in_band.end.error);
    EXPECT_EQ(in_band.end.error->text, error.text);
    EXPECT_FALSE(in_band.end.terminator);
    EXPECT_EQ(in_band.end.transport, Transport::kClean);
    EXPECT_FALSE(in_band.text.empty());

    auto field = error_ending(error);
    field.error_form = ErrorForm::kField;
    field.terminator = true;
    const auto as_field = cut(field);
    ASSERT_TRUE(as_field.end.error);
    EXPECT_EQ(as_field.end.error->text, error.text);
    EXPECT_TRUE(as_field.end.terminator);

    EXPECT_EQ(cut(silent_ending(BodyEnd::kReset)).end.transport, Transport::kReset);
    EXPECT_EQ(cut(silent_ending(BodyEnd::kFin)).end.transport, Transport::kTruncated);
    EXPECT_EQ(cut(silent_ending(BodyEnd::kFinInsideChunk)).end.transport, Transport::kTruncated);
    const auto laundered = cut(silent_ending(BodyEnd::kLastChunk));
    EXPECT_EQ(laundered.end.transport, Transport::kClean);
    EXPECT_FALSE(laundered.end.reason);
    EXPECT_FALSE(laundered.end.terminator);
    EXPECT_EQ(cut({.reason = "abort"}).end.reason, "abort");

    const auto refused = alone(plan, text, full_house(0, error_ending(error)));
    EXPECT_EQ(refused.status, 500);
    EXPECT_EQ(refused.end.error->text, error.text);
    EXPECT_TRUE(refused.text.empty());
    auto page = error_ending(error);
    page.html_error = true;
    EXPECT_THAT(alone(plan, text, full_house(0, page)).headers.at("content-type"),
                ::testing::HasSubstr("text/html"));
}

TEST(ScriptedServer, ASmallPoolEndsAllRunningAnswersInOneInstantWithThePoolFull) {
    auto plan = script();
    plan.pool = 100;
    answer::ServerError error;
    error.status = 500;
    error.text = "Context size has been exceeded.";
    const auto records = together(plan, one(kv_pool(100, error_ending(error))), 4,
                                  ask(answer::Api::kOpenAiChat, plan.prompts[0]));
    std::int64_t held = 0;
    for (const auto& record : records) {
        ASSERT_TRUE(record.end.error);
        held += scripted_prompt_tokens(plan.prompts[0].messages) + record.text_events;
        EXPECT_LT(std::chrono::abs(*record.timeline.ended - *records[0].timeline.ended),
                  milliseconds(5));
    }
    EXPECT_GT(held, 100 - 2 * 4);
    EXPECT_LE(held, 100);
}

TEST(ScriptedServer, ADeadEngineRefusesConnectionsUntilItIsBack) {
    auto plan = script();
    VirtualWorld world(1);
    ScriptedServer server(plan, one(cut_all(1, silent_ending(BodyEnd::kReset), seconds(2))));
    world.serve("server", 80, server);
    const auto text = ask(answer::Api::kOpenAiChat, plan.prompts[0], 5);
    User victim(ask(answer::Api::kOpenAiChat, plan.prompts[0])),
        early(text, world.now() + seconds(1)), late(text, world.now() + seconds(4));
    for (auto* user : {&victim, &early, &late}) world.host(*user);
    ASSERT_EQ(world.run(seconds(60)), Outcome::kDone);
    EXPECT_EQ(victim.record.end.transport, Transport::kReset);
    EXPECT_FALSE(early.record.status);
    EXPECT_EQ(late.record.end.reason, "length");
}

TEST(ScriptedServer, TellsTheTruthOfItselfOnTheEndpointsOfWhatItPlays) {
    auto plan = script();
    plan.pool = 1024;
    EXPECT_THAT(own_answer("/props", plan, {})->body,
                ::testing::AllOf(::testing::HasSubstr("\"n_ctx\":1024"),
                                 ::testing::HasSubstr("\"total_slots\":8")));
    EXPECT_THAT(own_answer("/metrics", plan, {.running = 3})->body,
                ::testing::HasSubstr("llamacpp:requests_processing 3"));
    plan.tells = {.usage = false, .timings = false, .props = false, .metrics = false};
    EXPECT_FALSE(own_answer("/props", plan, {}));
    EXPECT_FALSE(own_answer("/api/version", plan, {}));
    for (const auto plays : {Plays::kVllm, Plays::kOllama, Plays::kTabby}) {
        plan.plays = plays;
        boost::system::error_code error;
        boost::json::parse(own_answer("/v1/models", plan, {})->body, error);
        EXPECT_FALSE(error);
    }
    plan.plays = Plays::kOllama;
    plan.tells.props = true;
    for (const auto* target : {"/api/version", "/api/ps", "/api/tags", "/api/show"}) {
        boost::system::error_code error;
        boost::json::parse(own_answer(target, plan, {})->body, error);
        EXPECT_FALSE(error) << target;
    }
}

TEST(ScriptedServer, AnswersWhatItDoesNotUnderstandWithAnErrorAndGoesOn) {
    const auto plan = script();
    EXPECT_EQ(
        alone(plan, "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 5\r\n\r\n[1,2]").status,
        400);
    EXPECT_EQ(alone(plan, "GET /nowhere HTTP/1.1\r\nConnection: close\r\n\r\n").status, 404);
    const auto odd =
        alone(plan,
              "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: "
              "58\r\n\r\n{\"messages\":[1,{\"role\":2}],\"max_tokens\":\"x\",\"stream\":true}");
    EXPECT_EQ(odd.end.reason, "stop") << "an unknown prompt gets prose";
}

}  // namespace
}  // namespace fullstop::simulator
