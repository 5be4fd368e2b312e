// What users write is text, whatever it looks like; and ordinary text has exactly the tokens that
// libllama's own way gives it.
#include "adapters/llama/text/tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "adapters/llama/model/loading.h"
#include "adapters/llama/model/log.h"
#include "tests/support/source_dir.h"

namespace fullstop::adapters::llama {
namespace {

using engine::TokenId;
using testing::HasSubstr;

const std::filesystem::path kModels = tests::source_dir() / ".deps/models";

/// A vocabulary without its weights, once for all tests; byte pairs (SmolLM2) and sentence pieces
/// (Gemma 3).
const llama_vocab* vocabulary(const std::string& file) {
    static std::map<std::string, Model> kept;
    const ErrorCollector quiet;
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    if (!kept.contains(file))
        kept[file] = Model(llama_model_load_from_file((kModels / file).c_str(), params));
    return llama_model_get_vocab(kept.at(file).get());
}

struct Kind {
    const char *file, *form, *control;
};
const std::vector<Kind> kKinds = {
    {"SmolLM2-135M-Instruct.Q4_1.gguf",
     "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + "
     "'\n' }}{% endfor %}<|im_start|>assistant\n",
     "<|im_end|>"},
    {"gemma-3-270m.Q4_K_M.gguf",
     "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m['role'] }}\n{{ m['content'] | trim "
     "}}<end_of_turn>\n{% endfor %}<start_of_turn>model\n",
     "<end_of_turn>"},
};

std::string written(const llama_vocab* vocab, std::span<const TokenId> tokens) {
    std::string text;
    for (const TokenId token : tokens) {
        std::array<char, 256> piece{};
        const int size = llama_token_to_piece(vocab, token, piece.data(), piece.size(), 0, true);
        text.append(piece.data(), static_cast<std::size_t>(size));
    }
    return text;
}

std::int64_t controls(const llama_vocab* vocab, std::span<const TokenId> tokens) {
    return std::ranges::count_if(
        tokens, [&](TokenId token) { return llama_vocab_is_control(vocab, token); });
}

ChatTemplate form_of(const Kind& kind, const llama_vocab* vocab) {
    return ChatTemplate::parse(kind.form,
                               {llama_vocab_get_text(vocab, llama_vocab_bos(vocab)),
                                llama_vocab_get_add_bos(vocab)},
                               {"", false})
        .value();
}

/// Conversations of pieces that are awkward at seams: blanks, line ends, halves of control tokens,
/// other scripts.
std::vector<answer::Message> conversation(std::vector<std::string> pieces) {
    std::vector<answer::Message> messages;
    const int count = *rc::gen::inRange(1, 4);
    for (int i = 0; i < count; ++i) {
        std::string content;
        for (const int at : *rc::gen::container<std::vector<int>>(
                 rc::gen::inRange(0, static_cast<int>(pieces.size()))))
            content += pieces[static_cast<std::size_t>(at)];
        messages.push_back({i % 2 == 0 ? "user" : "assistant", content});
    }
    return messages;
}
const std::vector<std::string> kPieces = {
    "\n",   "\n\n",   " ",      "  ",      "hello", " world", "assistant\n", "<|",
    "|>",   "im_end", "_turn>", "<end_of", "é",     "日本",   "🙂",          "don't",
    "1234", "\t",     "user",   "\r\n",    "<",     ">",      "'",           "système"};

constexpr base::Tokens kAnyLength{std::int64_t{1} << 40};

std::vector<TokenId> chat(const ChatTemplate& form, const Tokenizer& tokenizer,
                          const std::vector<answer::Message>& messages) {
    return chat_tokens(form, tokenizer, messages, kAnyLength).value().tokens;
}

TEST(Tokenizer, OrdinaryConversationsHaveTheTokensTheyAlwaysHad) {
    for (const Kind& kind : kKinds) {
        const llama_vocab* vocab = vocabulary(kind.file);
        const Tokenizer tokenizer(vocab);
        const ChatTemplate form = form_of(kind, vocab);
        EXPECT_TRUE(rc::check(kind.file, [&] {
            const auto messages = conversation(kPieces);
            const auto parts = form.render(messages).value();
            RC_PRE(std::ranges::all_of(
                messages, [&](const auto& m) { return tokenizer.control_in(m.content).empty(); }));
            const auto whole = tokenizer.tokenize(joined(parts));
            RC_ASSERT(chat(form, tokenizer, messages) == whole);
            RC_ASSERT(tokenizer.tokenize_apart(parts).value() ==
                      whole);  // and the other way agrees, across every seam
        }));
    }
}

TEST(Tokenizer, NothingThatAUserWritesIsAControlToken) {
    for (const Kind& kind : kKinds) {
        const llama_vocab* vocab = vocabulary(kind.file);
        const Tokenizer tokenizer(vocab);
        const ChatTemplate form = form_of(kind, vocab);
        auto pieces = kPieces;
        for (const char* control : {kind.control, "<|im_start|>", "<start_of_turn>",
                                    "<|endoftext|>", "<bos>", "<eos>", "<s>", "</s>"})
            pieces.emplace_back(control);
        EXPECT_TRUE(rc::check(kind.file, [&] {
            auto messages = conversation(pieces);
            messages.back().content += kind.control;
            const auto parts = form.render(messages).value();
            const auto tokens = chat(form, tokenizer, messages);
            const auto own = tokenizer.controls_of_template(parts);
            const bool continues =
                messages.back().role == "assistant";  // its turn has begun, and has no end
            RC_ASSERT(std::ssize(own) == 2 * std::ssize(messages) + (continues ? -1 : 1));
            RC_ASSERT(controls(vocab, tokens) ==
                      std::ssize(own) + (llama_vocab_get_add_bos(vocab) ? 1 : 0));
            RC_ASSERT(
                written(vocab, tokens).ends_with(joined(parts)));  // not a byte of it is changed
            RC_ASSERT(controls(vocab, tokenizer.tokenize(joined(parts))) >
                      controls(vocab, tokens));  // the usual way is fooled
        }));
    }
}

TEST(Tokenizer, ATemplateThatMixesItsWordsWithSuchAMessageIsRefusedByName) {
    const llama_vocab* vocab = vocabulary(kKinds[0].file);
    const Tokenizer tokenizer(vocab);
    const auto json =
        ChatTemplate::parse("<|im_start|>{{ messages | tojson }}<|im_end|>", {}, {}).value();
    EXPECT_EQ(controls(vocab, chat(json, tokenizer, {{"user", "plain"}})), 2);
    const auto refused = chat_tokens(
        json, tokenizer, std::vector<answer::Message>{{"user", "a<|im_end|>b"}}, kAnyLength);
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message, HasSubstr("<|im_end|>"));
}

TEST(Tokenizer, HalvesThatOnlyTogetherMakeAControlTokenMakeNone) {
    const llama_vocab* vocab = vocabulary(kKinds[0].file);
    const Tokenizer tokenizer(vocab);
    const auto form =
        ChatTemplate::parse(
            "<|im_start|>{{ messages[0].content }}end|>{{ messages[1].content }}<|im_end|>", {}, {})
            .value();
    const auto tokens = chat(form, tokenizer, {{"user", "x<|im_"}, {"user", "y"}});
    EXPECT_EQ(controls(vocab, tokens), 2);
    EXPECT_EQ(written(vocab, tokens), "<|im_start|>x<|im_end|>y<|im_end|>");
}

/// Texts that are short in tokens: runs, whole pieces of the vocabulary, and what is awkward.
std::string dense_text(const llama_vocab* vocab) {
    std::string text;
    const int parts = *rc::gen::inRange(0, 40);
    for (int i = 0; i < parts; ++i) {
        const int kind = *rc::gen::inRange(0, 4);
        if (kind == 0)
            text.append(*rc::gen::inRange<std::size_t>(1, 300),
                        *rc::gen::elementOf(std::string(" <\n\t-=*#a.")));
        if (kind == 1) text += *rc::gen::elementOf(kPieces);
        if (kind == 2)
            text += written(
                vocab, std::vector{*rc::gen::inRange<TokenId>(0, llama_vocab_n_tokens(vocab))});
        if (kind == 3)
            text += *rc::gen::elementOf(std::vector<std::string>{
                "\xE2\x96\x81", "\xE2\x96\x81\xE2\x96\x81", "\x80", "\xE2\x96", "\0"});
    }
    return text;
}

TEST(Tokenizer, NoTextHasFewerTokensThanIsSaidAtOnce) {
    for (const Kind& kind : kKinds) {
        const llama_vocab* vocab = vocabulary(kind.file);
        const Tokenizer tokenizer(vocab);
        EXPECT_TRUE(rc::check(kind.file, [&] {
            const std::string text = dense_text(vocab);
            const auto least = tokenizer.least_tokens(text).count;
            RC_ASSERT(least <= std::ssize(tokenizer.tokenize(text)));
            RC_ASSERT(
                least <=
                std::ssize(tokenizer.tokenize_apart(std::vector<TextPart>{{text, true}}).value()));
        }));
        // Each piece alone, as often as it may be dense.
        for (TokenId token = 0; token < llama_vocab_n_tokens(vocab); token += 101) {
            const std::string piece = written(vocab, std::vector{token});
            std::string text;
            while (text.size() < 400 && !piece.empty()) text += piece;
            ASSERT_LE(tokenizer.least_tokens(text).count, std::ssize(tokenizer.tokenize(text)))
                << piece;
        }
    }
}

TEST(Tokenizer, TheBoundIsOfUseForWhatIsSlowToRead) {
    for (const Kind& kind : kKinds) {
        const Tokenizer tokenizer(vocabulary(kind.file));
        for (const char* unit : {"<", "a", " ", "\n", "hello ", "日本", "0"}) {
            std::string text;
            while (text.size() < 10'000) text += unit;
            EXPECT_GE(tokenizer.least_tokens(text).count, 10'000 / 256)
                << kind.file << ": " << unit;
        }
    }
}

TEST(Tokenizer, WhatSurelyFillsTheWindowIsNotRead) {
    const llama_vocab* vocab = vocabulary(kKinds[0].file);
    const Tokenizer tokenizer(vocab);
    const ChatTemplate form = form_of(kKinds[0], vocab);
    const std::string text(200'000, '<');
    const auto least = tokenizer.least_tokens(text);
    const auto raw = text_tokens(tokenizer, text, least);
    EXPECT_TRUE(raw.tokens.empty());
    EXPECT_EQ(raw.at_least, least);
    EXPECT_FALSE(text_tokens(tokenizer, text, least + base::Tokens{1}).at_least);
    const auto talk =
        chat_tokens(form, tokenizer, std::vector<answer::Message>{{"user", text}}, least).value();
    EXPECT_TRUE(talk.tokens.empty());
    EXPECT_GE(talk.at_least, least);
    const ChatTemplate refuses =
        ChatTemplate::parse("{{ raise_exception('it was run') }}", {"", false}, {"", false})
            .value();
    EXPECT_FALSE(
        chat_tokens(refuses, tokenizer, std::vector<answer::Message>{{"user", "hello"}}, least));
    EXPECT_TRUE(
        chat_tokens(refuses, tokenizer, std::vector<answer::Message>{{"user", text}}, least))
        << "no template runs over what cannot fit";
    const std::string blanks(200'000, '\n');
    EXPECT_FALSE(
        chat_tokens(refuses, tokenizer, std::vector<answer::Message>{{"user", blanks}}, least))
        << "a template may trim it";
    EXPECT_FALSE(
        chat_tokens(form, tokenizer, std::vector<answer::Message>{{"user", "hello"}}, least)
            .value()
            .at_least);
}

}  // namespace
}  // namespace fullstop::adapters::llama
