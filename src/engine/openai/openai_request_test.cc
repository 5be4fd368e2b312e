// What a request body asks of the engine, and what is said about one that asks nonsense.
#include "engine/openai/openai_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "engine/test_host.h"
#include "schema/grammar.h"

namespace fullstop::engine {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

std::string with(const std::string& member) {
    return R"({"messages":[{"role":"user","content":"hi"}],)" + member + "}";
}

Submission read(const std::string& member) {
    auto request = parse_completion(Route::kChat, with(member));
    EXPECT_TRUE(request.has_value()) << (request ? "" : request.error().message);
    return request ? std::move(request->submission) : Submission{};
}

std::string wrong(const std::string& body) {
    const auto request = parse_completion(Route::kChat, body);
    return request ? "accepted" : request.error().message + " @" + request.error().parameter;
}

TEST(OpenAiRequest, UrgencyAndDeadlineReachTheEngine) {
    const auto urgent =
        read(R"("fullstop":{"priority":"interactive","deadline_ms":1500,"on_deadline":"partial"})");
    EXPECT_EQ(urgent.priority, Priority::kInteractive);
    EXPECT_EQ(urgent.deadline, 1500ms);
    EXPECT_EQ(urgent.on_deadline, OnDeadline::kPartial);
    const auto batch = read(R"("fullstop":{"priority":"batch","deadline_ms":null})");
    EXPECT_EQ(batch.priority, Priority::kBatch);
    EXPECT_EQ(batch.deadline, std::nullopt);
    const auto plain = read(R"("fullstop":{})");
    EXPECT_EQ(plain.priority, Priority::kNormal);
    EXPECT_EQ(plain.on_deadline, std::nullopt)
        << "a deadline alone only makes an answer more urgent";
}

TEST(OpenAiRequest, NonsenseAboutUrgencyIsNamed) {
    const std::vector<std::pair<const char*, const char*>> all = {
        {R"("fullstop":7)", "fullstop is an object"},
        {R"("fullstop":{"priority":"now"})", "fullstop.priority is interactive, normal or batch"},
        {R"("fullstop":{"priority":1})", "fullstop.priority"},
        {R"("fullstop":{"deadline_ms":0})", "fullstop.deadline_ms"},
        {R"("fullstop":{"deadline_ms":86400001})", "from 1 to 86400000"},
        {R"("fullstop":{"deadline_ms":"1s"})", "fullstop.deadline_ms"},
        {R"("fullstop":{"on_deadline":"stop","deadline_ms":9})",
         "fullstop.on_deadline is error or partial"},
        {R"("fullstop":{"on_deadline":"partial"})", "give deadline_ms"},
        {R"("fullstop":{"prio":"batch"})", "fullstop.prio is not honoured"},
    };
    for (const auto& [member, words] : all)
        EXPECT_THAT(wrong(with(member)), HasSubstr(words)) << member;
}

TEST(OpenAiRequest, AResponseFormatReachesTheEngineAsAGrammar) {
    EXPECT_EQ(read(R"("response_format":{"type":"text"})").grammar, std::nullopt);
    EXPECT_EQ(read(R"("response_format":null)").grammar, std::nullopt);
    EXPECT_EQ(read(R"("response_format":{"type":"json_object"})").grammar,
              schema::json_object_grammar());
    const auto schema = read(
        R"("response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"const":"yes"}}})");
    EXPECT_THAT(schema.grammar.value_or(""), HasSubstr(R"(n0 ::= "\"yes\"")"));
    EXPECT_EQ(read(R"("response_format":{"type":"json_object","schema":{"const":"yes"}})").grammar,
              schema.grammar)
        << "as llama-server takes it";
    const auto text = parse_completion(
        Route::kText, R"({"prompt":"x","response_format":{"type":"json_object"}})");
    ASSERT_TRUE(text.has_value());
    EXPECT_EQ(text->submission.grammar, schema::json_object_grammar());
}

TEST(OpenAiRequest, NonsenseAboutTheResponseFormatIsNamed) {
    const std::vector<std::pair<const char*, const char*>> all = {
        {R"(7)", "response_format.type is text, json_object or json_schema"},
        {R"({})", "response_format.type is text"},
        {R"({"type":"yaml"})", "response_format.type is text"},
        {R"({"type":"text","schema":{}})", "response_format.schema is not honoured"},
        {R"({"type":"json_object","json_schema":{}})",
         "response_format.json_schema is not honoured"},
        {R"({"type":"json_schema"})", "response_format.json_schema is missing"},
        {R"({"type":"json_schema","json_schema":[]})", "response_format.json_schema is an object"},
        {R"({"type":"json_schema","json_schema":{"name":1,"schema":{}}})",
         "response_format.json_schema.name is a text"},
        {R"({"type":"json_schema","json_schema":{"strict":"yes","schema":{}}})",
         "response_format.json_schema.strict is true or false"},
        {R"({"type":"json_schema","json_schema":{"schema":{},"colour":1}})",
         "response_format.json_schema.colour is not honoured"},
        {R"({"type":"json_schema","json_schema":{"schema":{"type":"string","pattern":"a"}}})",
         "response_format.json_schema.schema at \"\": pattern: it begins with ^"},
        {R"({"type":"json_object","schema":{"type":"robot"}})", "response_format.schema at"},
    };
    for (const auto& [format, words] : all)
        EXPECT_THAT(wrong(with(std::string("\"response_format\":") + format)), HasSubstr(words))
            << format;
}

TEST(OpenAiRequest, ABodyThatIsNoObjectSaysWhereItGoesWrong) {
    EXPECT_EQ(wrong("{\"messages\":\"a\xFF"
                    "b\"}"),
              "the body is not UTF-8 at byte 14 @");
    EXPECT_THAT(wrong(R"({"messages":[}})"), HasSubstr("not JSON at byte 13"));
    EXPECT_THAT(wrong("{\"a\":" + std::string(40, '[') + std::string(40, ']') + "}"),
                HasSubstr("nested deeper than 32 levels"));
    EXPECT_THAT(wrong(std::string(3'000'000, '[')), HasSubstr("nested deeper"));
    EXPECT_EQ(wrong("[1]"), "the body is not a JSON object @");
    EXPECT_THAT(wrong(""), HasSubstr("not JSON at byte 0"));
}

TEST(OpenAiRequest, ABodyOfManySmallValuesIsRefusedBeforeAnythingIsBuiltOfIt) {
    const auto many = [](std::string_view each, std::size_t count) {
        std::string all;
        while (count-- > 0) all.append(each).append(",");
        return all + std::string(each);
    };
    for (const std::string& more : {"\"messages\":[" + many("{}", kMaxBodyValues) + "]",
                                    "\"logit_bias\":[" + many("0", kMaxBodyValues) + "]"})
        EXPECT_EQ(wrong("{" + more + "}"), "the body holds more than 65536 JSON values @");
}

TEST(OpenAiRequest, AKeyThatStandsTwiceIsRefusedSinceOneValueWouldBeIgnored) {
    EXPECT_EQ(wrong(with(R"("max_tokens":5,"max_tokens":6)")),
              "max_tokens stands twice in one object @max_tokens");
    EXPECT_THAT(wrong(R"({"messages":[{"role":"user","content":"a","content":"b"}]})"),
                HasSubstr("content stands twice"));
    EXPECT_THAT(wrong(with(R"("max_tokens":5,"m\u0061x_tokens":6)")),
                HasSubstr("max_tokens stands twice"))
        << "however it is written";
    EXPECT_EQ(read(R"("user":"messages","stop":["user","user"])").stop.size(), 2U)
        << "the same word in other places is no key";
}

TEST(OpenAiRequest, MessagesComeInEveryShapeThatClientsSend) {
    const auto request =
        parse_completion(Route::kChat, R"({"messages":[{"role":"developer","content":"be brief"},
        {"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]})");
    ASSERT_TRUE(request.has_value());
    const auto& messages = std::get<std::vector<answer::Message>>(request->submission.prompt);
    EXPECT_EQ(messages.at(0).role, "system");
    EXPECT_EQ(messages.at(1).content, "one\ntwo");
    EXPECT_THAT(wrong(R"({"messages":[{"role":"user"}]})"),
                HasSubstr("messages[0].content is missing"));
    EXPECT_THAT(wrong(R"({"messages":[{"content":"x"}]})"),
                HasSubstr("messages[0].role is missing"));
}

TEST(OpenAiRequest, AnAnswerPastItsDeadlineShowsItsTextOnlyWhenThatWasAskedAndNeverAStop) {
    Host host(TestBackend{base::Tokens{128}});
    host.backend.answers["user:hi\n"] = std::string(100, 'x');
    const auto partial = host.chat(R"("fullstop":{"deadline_ms":50,"on_deadline":"partial"})"),
               error = host.chat(R"("fullstop":{"deadline_ms":50,"on_deadline":"error"})"),
               streamed = host.chat(
                   R"("stream":true,"fullstop":{"deadline_ms":50,"on_deadline":"partial"})");
    for (int i = 0; i < 6; ++i) host.step();
    for (const auto id : {partial, error, streamed})
        host.commands.emplace_back(Cancel{
            .id = id, .cause = answer::Cause::kGenerationTimeLimit, .detail = "deadline of 50 ms"});
    host.run();
    EXPECT_EQ(host.read(partial).status, 504);
    const auto body = host.json_of(partial);
    EXPECT_EQ(body.at("choices").at(0).at("message").at("content"), "xxxxxx");
    EXPECT_TRUE(body.at("choices").at(0).at("finish_reason").is_null());
    EXPECT_EQ(body.at("error").at("code"), "deadline");
    EXPECT_EQ(body.at("error").at("fullstop").at("stop").at("cause"), "generation_time_limit");
    EXPECT_EQ(body.at("error").at("fullstop").at("deadline_ms"), 50.0);
    EXPECT_EQ(host.read(error).status, 504);
    EXPECT_FALSE(host.json_of(error).as_object().contains("choices"));
    const auto record = host.read(streamed);
    EXPECT_EQ(record.text, "xxxxxx");
    EXPECT_EQ(record.end.reason, std::nullopt);
    EXPECT_FALSE(record.end.terminator);
    EXPECT_EQ(record.fullstop_cause, "generation_time_limit");
    EXPECT_THAT(host.clients[streamed].bytes, Not(HasSubstr("\"stop\",")));
}

}  // namespace
}  // namespace fullstop::engine
