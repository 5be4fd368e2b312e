// Log-probabilities are those of the model, and each stands beside the text it belongs to.
#include "engine/sampling/token_logprobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/sampling/text_gate.h"
#include "engine/test_host.h"

namespace fullstop::engine {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TokenId byte(char c) { return static_cast<unsigned char>(c) + 1; }

/// A row that knows three letters.
std::vector<float> row(float a, float b, float c) {
    std::vector<float> logits(257, -kInfinity);
    logits[static_cast<std::size_t>(byte('a'))] = a;
    logits[static_cast<std::size_t>(byte('b'))] = b;
    logits[static_cast<std::size_t>(byte('c'))] = c;
    return logits;
}

TEST(TokenLogprobs, AreTheLogSoftmaxOfTheRawLogits) {
    const TestBackend backend;
    TokenLogprobs logprobs(2);
    logprobs.add(backend, row(1000 + std::log(0.2F), 1000 + std::log(0.5F), 1000 + std::log(0.3F)),
                 byte('a'));
    const auto shown = logprobs.take(1);
    ASSERT_EQ(shown.size(), 1U);
    EXPECT_EQ(shown[0].chosen.bytes, "a");
    EXPECT_NEAR(shown[0].chosen.logprob, std::log(0.2), 1e-4);
    ASSERT_EQ(shown[0].top.size(), 2U)
        << "the chosen one is among them only when it is one of the best";
    EXPECT_EQ(shown[0].top[0].bytes + shown[0].top[1].bytes, "bc");
    EXPECT_NEAR(shown[0].top[0].logprob, std::log(0.5), 1e-4);
}

TEST(TokenLogprobs, FewerThanAskedWhereTheModelAllowsFewerAndEqualsInOrderOfId) {
    const TestBackend backend;
    TokenLogprobs logprobs(20);
    logprobs.add(backend, row(1, 1, std::nanf("")), byte('b'));
    const auto shown = logprobs.take(1);
    ASSERT_EQ(shown.at(0).top.size(), 2U);
    EXPECT_EQ(shown[0].top[0].bytes, "a");
    EXPECT_NEAR(shown[0].chosen.logprob, std::log(0.5), 1e-6);
}

TEST(TokenLogprobs, ComeWithTheTextThatTheyCompleteWhateverIsHeldBack) {
    EXPECT_TRUE(rc::check([] {
        const auto alphabet =
            rc::gen::elementOf(std::vector<std::string>{"a", "b", "E", "N", "D", "é", "€"});
        std::string bytes;
        for (const auto& part : *rc::gen::container<std::vector<std::string>>(alphabet))
            bytes += part;
        const TestBackend backend;
        TextGate gate({"END"});
        TokenLogprobs logprobs(0);
        std::string text, tokens;
        for (const char c : bytes) {
            logprobs.add(backend, std::vector<float>(257), byte(c));
            text += gate.push(std::string(1, c));
            for (const auto& token : logprobs.take(gate.shown())) tokens += token.chosen.bytes;
            RC_ASSERT(tokens == text);
            if (gate.stopped_by()) break;
        }
        text += gate.flush();
        for (const auto& token : logprobs.finish(gate.shown())) tokens += token.chosen.bytes;
        RC_ASSERT(tokens == text);
    }));
}

/// Tokens of several bytes, and one of none.
class Words final : public Backend {
public:
    const ModelFacts& facts() const override { return facts_; }
    PromptTokens tokenize(std::string_view) const override { return {}; }
    std::string piece(TokenId token) const override {
        return std::vector<std::string>{"ab", "", "xE", "ND", "z"}.at(
            static_cast<std::size_t>(token));
    }
    bool is_end(TokenId) const override { return false; }
    base::Result<PromptTokens> chat_tokens(std::span<const answer::Message>) const override {
        return PromptTokens();
    }
    base::Result<std::string> chat_text(std::span<const answer::Message>) const override {
        return std::string();
    }
    base::Result<std::unique_ptr<TokenConstraint>> constrain(const std::string&) override {
        return base::usage_error("none");
    }
    DecodeStatus decode(std::span<const Run>) override { return DecodeStatus::kOk; }
    std::span<const float> logits(std::size_t) const override { return {}; }
    void remove(SequenceId) override {}
    std::vector<std::byte> snapshot(SequenceId, base::Tokens) override { return {}; }
    bool append(SequenceId, base::Tokens, std::span<const std::byte>) override { return false; }
    bool restore(SequenceId, base::Tokens, base::Tokens, std::span<const std::byte>) override {
        return false;
    }
    void share(SequenceId, SequenceId, base::Tokens) override {}

private:
    ModelFacts facts_;
};

TEST(TokenLogprobs, ATokenThatAStopStringCutsIsReportedAndOneThatItSwallowsIsNot) {
    const Words backend;
    TextGate gate({"END"});
    TokenLogprobs logprobs(0);
    std::vector<std::string> seen;
    std::string text;
    for (const TokenId token : {0, 1, 2, 3}) {
        logprobs.add(backend, std::vector<float>(5), token);
        text += gate.push(backend.piece(token));
        for (const auto& shown : logprobs.take(gate.shown())) seen.push_back(shown.chosen.bytes);
    }
    for (const auto& shown : logprobs.finish(gate.shown())) seen.push_back(shown.chosen.bytes);
    EXPECT_EQ(text, "abx");
    EXPECT_EQ(seen, (std::vector<std::string>{"ab", "", "xE"})) << "ND is all of it stop string";
}

TEST(TokenLogprobs, AChatAnswerCarriesThemWholeAndStreamed) {
    Host host;
    host.backend.answers["user:hi\n"] = "é€!";
    const auto whole = host.chat(R"("logprobs":true,"top_logprobs":2)"),
               plain = host.chat(R"("logprobs":true)");
    const auto streamed = host.chat(R"("logprobs":true,"top_logprobs":1,"stream":true)"),
               without = host.chat("");
    host.run();
    const auto choice = host.json_of(whole).at("choices").at(0);
    const auto& content = choice.at("logprobs").at("content").as_array();
    ASSERT_EQ(content.size(), 6U) << "the test model's tokens are bytes";
    EXPECT_EQ(content[0].at("bytes"), json::array{0xC3U});
    EXPECT_EQ(content[0].at("token"), "\xEF\xBF\xBD");
    EXPECT_EQ(content[5].at("token"), "!");
    EXPECT_NEAR(content[5].at("logprob").as_double(), 0, 1e-6);
    EXPECT_EQ(content[5].at("top_logprobs").as_array().size(), 2U);
    EXPECT_EQ(content[5].at("top_logprobs").at(0).at("token"), "!");
    EXPECT_NEAR(content[5].at("top_logprobs").at(1).at("logprob").as_double(), -50, 1e-3);
    EXPECT_TRUE(host.json_of(plain)
                    .at("choices")
                    .at(0)
                    .at("logprobs")
                    .at("content")
                    .at(0)
                    .at("top_logprobs")
                    .as_array()
                    .empty());
    EXPECT_FALSE(host.json_of(without).at("choices").at(0).as_object().contains("logprobs"));

    std::string bytes;
    int events = 0;
    const std::string& all = host.clients[streamed].bytes;
    for (std::size_t at = 0; (at = all.find("data: {", at)) != std::string::npos; ++at) {
        const auto event = json::parse(all.substr(at + 6, all.find('\n', at) - at - 6));
        const auto* logprobs = event.at("choices").at(0).as_object().if_contains("logprobs");
        if (logprobs == nullptr) continue;
        ++events;
        std::string of_event;
        for (const auto& token : logprobs->at("content").as_array())
            for (const auto& one : token.at("bytes").as_array())
                of_event += static_cast<char>(one.to_number<int>());
        EXPECT_EQ(of_event,
                  std::string(event.at("choices").at(0).at("delta").at("content").as_string()))
            << "each event holds the tokens of its own text";
        bytes += of_event;
    }
    EXPECT_EQ(bytes, "é€!");
    EXPECT_EQ(events, 3);
    EXPECT_EQ(host.read(streamed).text, "é€!");
}

TEST(TokenLogprobs, ATextAnswerCarriesThemInListsWithOffsets) {
    Host host;
    host.backend.answers["x\n"] = "aéb";
    const auto id = host.send("POST", "/v1/completions",
                              R"({"prompt":"x\n","temperature":0,"logprobs":1,"stop":"b"})");
    const auto none =
        host.send("POST", "/v1/completions", R"({"prompt":"x\n","temperature":0,"logprobs":0})");
    host.run();
    const auto lists = host.json_of(id).at("choices").at(0).at("logprobs");
    EXPECT_EQ(lists.at("tokens"), (json::array{"a", "\xEF\xBF\xBD", "\xEF\xBF\xBD"}))
        << "what the stop string swallowed is not there";
    EXPECT_EQ(lists.at("text_offset"), (json::array{0, 1, 2}));
    EXPECT_EQ(lists.at("token_logprobs").as_array().size(), 3U);
    EXPECT_TRUE(lists.at("top_logprobs").at(0).as_object().contains("a"));
    EXPECT_EQ(host.json_of(none).at("choices").at(0).at("logprobs").at("top_logprobs").at(0),
              json::object());
}

TEST(TokenLogprobs, NonsenseIsNamed) {
    Host host;
    for (const auto& [member, words] :
         {std::pair(R"("logprobs":5)", "logprobs is true or false"),
          std::pair(R"("logprobs":true,"top_logprobs":21)", "from 0 to 20"),
          std::pair(R"("top_logprobs":2)", "top_logprobs needs logprobs"),
          std::pair(R"("logprobs":false,"top_logprobs":2)", "needs logprobs")})
        EXPECT_THAT(host.body(host.chat(member)), HasSubstr(words)) << member;
    EXPECT_THAT(
        host.body(host.send("POST", "/v1/completions", R"({"prompt":"x","logprobs":true})")),
        HasSubstr("logprobs is a whole number from 0 to 20"));
    EXPECT_TRUE(host.commands.empty());
}

}  // namespace
}  // namespace fullstop::engine
