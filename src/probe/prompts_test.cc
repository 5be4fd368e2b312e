// The user's prompts are read whole or refused with file, line and field; the built-in ones can be
// checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "probe/schedule.h"

namespace fullstop::probe {
namespace {

using testing::HasSubstr;

std::string refused(std::string_view text) {
    const auto prompts = parse_prompts(text, "mine.jsonl");
    return prompts ? "accepted" : prompts.error().message;
}

TEST(PromptsFile, EveryFieldOfTheContractIsRead) {
    const auto prompts = parse_prompts(
        R"({"id": "a", "prompt": "List.", "system": "Be brief.", "max_tokens": 64, "tags": ["x", "y"],)"
        R"( "check": {"items": 8, "contains": ["Mercury"], "json": true, "regex": "^a", "ends_with": "END"}})"
        "\n"
        R"({"id": "b", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "go on"}]})",
        "mine.jsonl");
    ASSERT_TRUE(prompts) << prompts.error().message;
    ASSERT_EQ(prompts->size(), 2u);
    const answer::Prompt& a = prompts->at(0);
    EXPECT_EQ(a.messages,
              (std::vector<answer::Message>{{"system", "Be brief."}, {"user", "List."}}));
    EXPECT_EQ(a.max_tokens->count, 64);
    EXPECT_EQ(a.check.items, 8);
    EXPECT_THAT(a.check.contains, testing::ElementsAre("Mercury"));
    EXPECT_TRUE(a.check.json);
    EXPECT_EQ(a.check.regex, "^a");
    EXPECT_EQ(a.check.ends_with, "END");
    EXPECT_THAT(a.tags, testing::ElementsAre("x", "y"));
    EXPECT_EQ(prompts->at(1).messages.size(), 3u);
    EXPECT_TRUE(prompts->at(1).check.empty());
}

TEST(PromptsFile, MarksLineEndsAndBlankLinesDoNotMatter) {
    const auto prompts = parse_prompts(
        "\xEF\xBB\xBF{\"id\":\"a\",\"prompt\":\"x\"}\r\n\r\n  \n{\"id\":\"b\",\"prompt\":\"y\"}",
        "mine.jsonl");
    ASSERT_TRUE(prompts) << prompts.error().message;
    EXPECT_EQ(prompts->size(), 2u);
}

TEST(PromptsFile, ABadLineIsNamedWithFileLineAndField) {
    const std::string good = "{\"id\":\"a\",\"prompt\":\"x\"}\n";
    EXPECT_THAT(refused(good + "{\"id\":\"b\",\"prompt\":7}"),
                HasSubstr("mine.jsonl, line 2: field \"prompt\" is not a text"));
    EXPECT_THAT(refused(good + "\n{\"id\":\"b\","),
                HasSubstr("mine.jsonl, line 3: the line is not JSON"));
    EXPECT_THAT(refused(good + "[1]"), HasSubstr("line 2: the line is not a JSON object"));
    EXPECT_THAT(refused(good + good),
                HasSubstr("line 2: field \"id\" \"a\" stands on line 1 already"));
    EXPECT_THAT(refused("{\"prompt\":\"x\"}"), HasSubstr("field \"id\" is missing"));
    EXPECT_THAT(refused("{\"id\":\"a\"}"), HasSubstr("field \"prompt\" is missing"));
    EXPECT_THAT(refused("{\"id\":\"\",\"prompt\":\"x\"}"), HasSubstr("field \"id\" is empty"));
    EXPECT_THAT(refused("{\"id\":\"a\",\"prompt\":\"x\",\"messages\":[]}"),
                HasSubstr("field \"messages\""));
    EXPECT_THAT(refused("{\"id\":\"a\",\"messages\":[{\"role\":\"robot\",\"content\":\"x\"}]}"),
                HasSubstr("field \"messages[0].role\""));
    EXPECT_THAT(refused("{\"id\":\"a\",\"messages\":[{\"role\":\"user\"}]}"),
                HasSubstr("field \"messages[0].content\" is missing"));
    EXPECT_THAT(refused("{\"id\":\"a\",\"prompt\":\"x\",\"max_tokens\":0}"),
                HasSubstr("field \"max_tokens\""));
    EXPECT_THAT(refused("{\"id\":\"a\",\"prompt\":\"x\",\"max_tokens\":1.5}"),
                HasSubstr("field \"max_tokens\""));
    EXPECT_THAT(refused("{\"id\":\"a\",\"prompt\":\"x\",\"max_token\":5}"),
                HasSubstr("field \"max_token\" is not known here"));
    EXPECT_THAT(refused("{\"id\":\"a\",\"prompt\":\"x\",\"check\":{\"item\":5}}"),
                HasSubstr("field \"check.item\" is not known here"));
    EXPECT_THAT(refused("{\"id\":\"a\",\"prompt\":\"x\",\"check\":{\"items\":-1}}"),
                HasSubstr("field \"check.items\""));
    EXPECT_THAT(refused("{\"id\":\"a\",\"prompt\":\"x\",\"check\":{\"contains\":[]}}"),
                HasSubstr("field \"check.contains\" is empty"));
    EXPECT_THAT(refused("{\"id\":\"a\",\"prompt\":\"x\",\"check\":{\"contains\":[\"a\",3]}}"),
                HasSubstr("field \"check.contains[1]\""));
    EXPECT_THAT(refused("{\"id\":\"a\",\"prompt\":\"x\",\"check\":{\"json\":1}}"),
                HasSubstr("field \"check.json\""));
    EXPECT_THAT(refused("{\"id\":\"a\",\"prompt\":\"x\",\"check\":{\"regex\":\"(\"}}"),
                HasSubstr("field \"check.regex\""));
    EXPECT_THAT(refused("{\"id\":\"a\\u0000b\",\"prompt\":\"x\"}"),
                HasSubstr("field \"id\" holds a control character"));
}

TEST(PromptsFile, InvalidUtf8IsRefusedNotSent) {
    EXPECT_THAT(refused("{\"id\":\"a\",\"prompt\":\"\xff\xfe\"}"),
                HasSubstr("line 1: the line is not JSON"));
}

TEST(PromptsFile, AnEmptyFileSaysWhatALineLooksLike) {
    const auto prompts = parse_prompts("\xEF\xBB\xBF\r\n\n", "mine.jsonl");
    ASSERT_FALSE(prompts);
    EXPECT_EQ(prompts.error().kind, base::ErrorKind::kUsage);
    EXPECT_EQ(prompts.error().message, "mine.jsonl holds no prompt");
    EXPECT_THAT(prompts.error().hint, HasSubstr("\"prompt\""));
}

TEST(PromptsFile, GarbageNeverGetsThrough) {
    EXPECT_NE(refused(std::string("\0\0\0", 3)), "accepted");
    EXPECT_NE(refused("<!DOCTYPE html>"), "accepted");
    EXPECT_NE(refused(std::string(100'000, '[')), "accepted");
    EXPECT_NE(refused("{\"id\":\"a\",\"prompt\":\"x\"} {\"id\":\"b\"}"), "accepted");
}

TEST(BuiltinPrompts, AreEightDifferentOnesThatCanBeChecked) {
    const auto prompts = builtin_prompts();
    EXPECT_EQ(prompts.size(), 8u);
    std::set<std::string> ids;
    bool items = false, facts = false, json = false, code = false;
    for (const auto& prompt : prompts) {
        ids.insert(prompt.id);
        EXPECT_FALSE(prompt.check.empty()) << prompt.id;
        EXPECT_FALSE(prompt.messages.empty()) << prompt.id;
        items = items || prompt.check.items;
        facts = facts || !prompt.check.contains.empty();
        json = json || prompt.check.json;
        code = code || prompt.check.regex;
    }
    EXPECT_EQ(ids.size(), prompts.size());
    EXPECT_TRUE(items && facts && json && code);
}

}  // namespace
}  // namespace fullstop::probe
