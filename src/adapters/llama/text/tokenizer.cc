// Texts are cut at control tokens where libllama would cut them.
#include "adapters/llama/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/assert.h"

namespace fullstop::adapters::llama {
namespace {

using engine::TokenId;

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::vector<ControlTokens::Token> controls_of(const llama_vocab* vocabulary) {
    std::map<std::string, TokenId> controls;
    for (TokenId id = 0; id < llama_vocab_n_tokens(vocabulary); ++id) {
        if ((llama_vocab_get_attr(vocabulary, id) &
             (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) == 0)
            continue;
        if (const std::string text = llama_vocab_get_text(vocabulary, id); !text.empty())
            controls.emplace(text, id);
    }
    return {controls.begin(), controls.end()};
}

}  // namespace

Tokenizer::Tokenizer(const llama_vocab* vocabulary)
    : vocabulary_(vocabulary), controls_(controls_of(vocabulary)), bound_(vocabulary) {}

std::vector<TokenId> Tokenizer::call(std::string_view text, bool ends, bool control) const {
    std::vector<TokenId> tokens(
        text.size() + 8);  // no token is shorter than a byte; some models add a few of their own
    const auto once = [&] {
        return llama_tokenize(vocabulary_, text.data(), static_cast<std::int32_t>(text.size()),
                              tokens.data(), static_cast<std::int32_t>(tokens.size()), ends,
                              control);
    };
    int count = once();
    if (count < 0) {
        tokens.resize(static_cast<std::size_t>(-count));
        count = once();
    }
    FULLSTOP_ASSERT(count >= 0, "the tokenizer says how much room it needs");
    tokens.resize(static_cast<std::size_t>(count));
    return tokens;
}

std::vector<TokenId> Tokenizer::tokenize(std::string_view text) const {
    return call(text, true, true);
}

std::string_view Tokenizer::control_in(std::string_view text) const {
    const auto found = controls_.next(text, 0);
    return found ? text.substr(found->at, found->length) : std::string_view();
}

bool Tokenizer::messages_make_control(std::span<const TextPart> parts) const {
    const std::string text = joined(parts);
    std::vector<bool> of_message;
    for (const TextPart& part : parts)
        of_message.insert(of_message.end(), part.text.size(), part.from_message);
    // One that begins inside another may reach into a message: all places are looked at.
    for (auto found = controls_.next(text, 0); found; found = controls_.next(text, found->at + 1)) {
        const auto begin = of_message.begin() + static_cast<std::ptrdiff_t>(found->at);
        if (std::find(begin, begin + static_cast<std::ptrdiff_t>(found->length), true) !=
            begin + static_cast<std::ptrdiff_t>(found->length))
            return true;
    }
    return false;
}

std::vector<TokenId> Tokenizer::controls_of_template(std::span<const TextPart> parts) const {
    std::vector<TokenId> all;
    for (const TextPart& part : parts)
        for (auto found = controls_.next(part.text, 0); !part.from_message && found;
             found = controls_.next(part.text, found->at + found->length))
            all.push_back(found->token);
    return all;
}

std::string Tokenizer::broken(std::string_view text) const {
    std::string out;
    std::size_t from = 0;
    while (const auto found = controls_.next(text, from)) {
        out.append(text.substr(from, found->at - from)).append(1, text[found->at]).append(1, ' ');
        from = found->at + 1;
    }
    return out.append(text.substr(from));
}

std::optional<std::vector<TokenId>> Tokenizer::tokenize_apart(
    std::span<const TextPart> parts) const {
    std::vector<TokenId> tokens;
    if (llama_vocab_get_add_bos(vocabulary_)) tokens.push_back(llama_vocab_bos(vocabulary_));
    std::string between;
    bool plain = true;
    const auto read_between = [&] {
        const auto more = between.empty() ? std::vector<TokenId>() : call(between, false, false);
        plain = plain && std::ranges::none_of(more, [&](TokenId token) {
                    return llama_vocab_is_control(vocabulary_, token);
                });
        tokens.insert(tokens.end(), more.begin(), more.end());
        between.clear();
    };
    bool skip_blanks = false;  // behind a token that takes them with it
    const auto add = [&](std::string_view text) {
        while (skip_blanks && !text.empty() && is_blank(text.front())) text.remove_prefix(1);
        if (!text.empty()) skip_blanks = false;
        between += text;
    };
    for (const TextPart& part : parts) {
        const std::string_view text = part.text;
        std::size_t from = 0;
        for (auto found = controls_.next(text, 0); !part.from_message && found;
             found = controls_.next(text, from)) {
            add(text.substr(from, found->at - from));
            const auto takes = llama_vocab_get_attr(vocabulary_, found->token);
            while ((takes & LLAMA_TOKEN_ATTR_LSTRIP) != 0 && !between.empty() &&
                   is_blank(between.back()))
                between.pop_back();
            read_between();
            tokens.push_back(found->token);
            skip_blanks = (takes & LLAMA_TOKEN_ATTR_RSTRIP) != 0;
            from = found->at + found->length;
        }
        add(text.substr(from));
    }
    read_between();
    if (llama_vocab_get_add_eos(vocabulary_)) tokens.push_back(llama_vocab_eos(vocabulary_));
    return plain ? std::optional(std::move(tokens)) : std::nullopt;
}

namespace {

/// As much as a template leaves of a text that it trims.
std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r\n";
    const auto begin = std::min(text.find_first_not_of(kBlanks), text.size());
    return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace

std::string joined(std::span<const TextPart> parts) {
    std::string text;
    for (const TextPart& part : parts) text += part.text;
    return text;
}

engine::PromptTokens text_tokens(const Tokenizer& tokenizer, std::string_view text,
                                 base::Tokens window) {
    const base::Tokens least = tokenizer.least_tokens(text);
    return least < window ? engine::PromptTokens{.tokens = tokenizer.tokenize(text)}
                          : engine::PromptTokens{.at_least = least};
}

base::Result<engine::PromptTokens> chat_tokens(const ChatTemplate& form, const Tokenizer& tokenizer,
                                               std::span<const answer::Message> messages,
                                               base::Tokens window) {
    // Running a template over megabytes takes half a second, in which nobody's answer goes on. Some
    // templates leave out what an assistant thought, so that what holds thinking does not count.
    base::Tokens said;
    for (const answer::Message& message : messages)
        if (message.role != "assistant" || !message.content.contains("think>"))
            said += tokenizer.least_tokens(trimmed(message.content));
    if (said >= window) return engine::PromptTokens{.at_least = said};
    const auto parts = form.render(messages);
    if (!parts) return std::unexpected(parts.error());
    const std::string text = joined(*parts);
    if (const base::Tokens least = tokenizer.least_tokens(text); least >= window)
        return engine::PromptTokens{.at_least = least};
    std::string_view control;
    for (const answer::Message& message : messages)
        if (control.empty()) control = tokenizer.control_in(message.content);
    if (control.empty() && !tokenizer.messages_make_control(*parts))
        return engine::PromptTokens{.tokens = tokenizer.tokenize(text)};
    std::vector<answer::Message> harmless(messages.begin(), messages.end());
    for (answer::Message& message : harmless) message.content = tokenizer.broken(message.content);
    // What the engine takes for the template's must not depend on what was written: some filters
    // lose track of it.
    const auto without = form.render(harmless);
    if (without &&
        tokenizer.controls_of_template(*parts) == tokenizer.controls_of_template(*without))
        if (auto tokens = tokenizer.tokenize_apart(*parts))
            return engine::PromptTokens{.tokens = std::move(*tokens)};
    return base::usage_error(
        fmt::format("a message holds {}, which this model reads as a control token, and its chat "
                    "template does not keep messages apart",
                    control.empty() ? "a part of a control token" : control),
        "write it in another way, or use /v1/completions");
}

}  // namespace fullstop::adapters::llama
