// Chat templates say what Python's Jinja makes of them (tests/golden/chat_templates), and refuse in
// their own words.
#include "adapters/llama/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "adapters/llama/text/tokenizer.h"
#include "tests/support/source_dir.h"

namespace fullstop::adapters::llama {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

std::string content(const std::string& name) {
    std::ifstream file(tests::source_dir() / "tests/golden/chat_templates" / name);
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_FALSE(text.str().empty()) << name;
    return text.str();
}

std::string render(const std::string& source, const std::vector<answer::Message>& messages) {
    const auto form = ChatTemplate::parse(source, {"<s>"}, {"</s>"});
    if (!form) return "unreadable: " + form.error().message;
    const auto text = form->render(messages);
    return text ? joined(*text) : "refused: " + text.error().message;
}

TEST(ChatTemplate, RendersAsPythonsJinjaDoes) {
    const auto cases = json::parse(content("expected.json")).as_array();
    EXPECT_GE(cases.size(), 50U);
    for (const auto& one : cases) {
        std::vector<answer::Message> messages;
        for (const auto& message : one.at("messages").as_array())
            messages.push_back({std::string(message.at("role").as_string()),
                                std::string(message.at("content").as_string())});
        const std::string name(one.at("template").as_string()),
            text = render(content(name), messages);
        if (const auto* expected = one.as_object().if_contains("text"))
            EXPECT_EQ(text, std::string(expected->as_string()))
                << name << ", " << one.at("conversation");
        else
            EXPECT_THAT(text, AllOf(HasSubstr("does not take this conversation"),
                                    HasSubstr(std::string(one.at("refusal").as_string()))))
                << name;
    }
}

TEST(ChatTemplate, WhatCameFromMessagesIsKeptApartFromTheTemplatesWords) {
    const auto form = ChatTemplate::parse(
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}!{% endfor %}",
        {"<s>", true}, {"</s>"});
    const std::vector<answer::Message> messages = {{"system", " a "}, {"user", "b</s>"}};
    EXPECT_EQ(form->render(messages).value(), (std::vector<TextPart>{{"[system] ", false},
                                                                     {"a", true},
                                                                     {"![user] ", false},
                                                                     {"b</s>", true},
                                                                     {"!", false}}));
}

TEST(ChatTemplate, AConversationThatEndsWithTheAssistantsWordsGoesOnBehindThem) {
    int rendered = 0;
    for (const auto& one : json::parse(content("expected.json")).as_array()) {
        const auto* expected = one.as_object().if_contains("text");
        if (expected == nullptr) continue;
        std::vector<answer::Message> messages;
        for (const auto& message : one.at("messages").as_array())
            messages.push_back({std::string(message.at("role").as_string()),
                                std::string(message.at("content").as_string())});
        const std::string name(one.at("template").as_string()),
            begun = std::string(expected->as_string());
        messages.push_back({"assistant", " Four, </s> I  "});
        EXPECT_EQ(render(content(name), messages), begun + " Four, </s> I  ")
            << name << ": as it was written, blanks and all";
        messages.back().content.clear();
        EXPECT_EQ(render(content(name), messages), begun) << name;
        ++rendered;
    }
    EXPECT_GE(rendered, 30);
}

TEST(ChatTemplate, WhatIsContinuedIsAMessagesText) {
    const auto form = ChatTemplate::parse(
        "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}[assistant] ",
        {"<s>", true}, {"</s>", true});
    const std::vector<answer::Message> messages = {{"user", "a"}, {"assistant", "b</s>"}};
    EXPECT_EQ(form->render(messages).value(),
              (std::vector<TextPart>{
                  {"[user] ", false}, {"a", true}, {"[assistant] ", false}, {"b</s>", true}}));
}

TEST(ChatTemplate, OnlyOneMessageOfTheAssistantIsContinued) {
    EXPECT_THAT(render("{% for m in messages %}{{ m.content }}{% endfor %}",
                       {{"user", "x"}, {"assistant", "a"}, {"assistant", "b"}}),
                HasSubstr("ends with two messages of the assistant"));
}

TEST(ChatTemplate, ARefusalNamesThePlaceAndTheReason) {
    EXPECT_EQ(
        render("{{ bos_token }}\n  {{ raise_exception('no system, please') }}", {{"system", "x"}}),
        "refused: the model's chat template does not take this conversation: Jinja Exception: no "
        "system, please (its line 2, column 21)");
}

TEST(ChatTemplate, AProgramThatCannotBeReadIsSaidToBeSo) {
    for (const char* bad : {"{% for m in messages %}", "{{ 'open", "{% if %}{% endif %}",
                            "{{ messages | nosuchfilter }}", "{% nonsense %}"}) {
        const std::string said = render(bad, {{"user", "x"}});
        EXPECT_TRUE(said.starts_with("unreadable: the model's chat template") ||
                    said.starts_with("refused: the model's chat template"))
            << bad << ": " << said;
        EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    }
}

TEST(ChatTemplate, TheSameConversationGivesTheSameTextEachTime) {
    const auto form = ChatTemplate::parse(content("mistral.jinja"), {"<s>"}, {"</s>"});
    const std::vector<answer::Message> messages = {{"system", "a"}, {"user", "b"}};
    const auto first = form->render(messages).value();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(form->render(messages).value(), first);
}

}  // namespace
}  // namespace fullstop::adapters::llama
