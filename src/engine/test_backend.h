// A model for tests: one token a byte, answers from a table or from the prompt's own hash, and a
// strict account of its KV cells. It gives each sequence the same answer whatever else it serves.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/backend.h"

namespace fullstop::engine {

/// The text itself and then the end; where it holds a '?' any letter may stand.
class ExactText final : public TokenConstraint {
public:
    explicit ExactText(std::string text) : text_(std::move(text)) {}
    void keep_allowed(std::vector<TokenId>& tokens) override {
        std::erase_if(tokens, [&](TokenId token) {
            if (at_ == text_.size()) return token != 0;
            return text_[at_] == '?' ? token < 'a' + 1 || token > 'z' + 1
                                     : token != static_cast<unsigned char>(text_[at_]) + 1;
        });
    }
    void accept(TokenId) override { ++at_; }

private:
    std::string text_;
    std::size_t at_ = 0;
};

class TestBackend final : public Backend {
public:
    static constexpr TokenId kEnd = 0;

    explicit TestBackend(base::Tokens window = {128}, std::int64_t sequences = 4,
                         std::optional<base::Tokens> pool = {}) {
        facts_ = {.name = "test-model",
                  .layout = pool ? KvLayout::kUnified : KvLayout::kStreams,
                  .kv_type = KvType::kF16,
                  .window = window,
                  .pool = pool.value_or(window * sequences),
                  .kv_bytes_per_token = base::Bytes{10},
                  .max_sequences = sequences,
                  .vocabulary = 257,
                  .threads = 1,
                  .shares = pool.has_value(),
                  .pads = false};
    }

    /// What the model answers to this prompt; every other prompt gets letters of a length drawn
    /// from the prompt.
    std::map<std::string, std::string> answers;
    DecodeStatus next_status = DecodeStatus::kOk;
    bool no_numbers = false;  ///< logits are all NaN
    bool throws = false;      ///< when a conversation is read
    int fail_restores = 0;    ///< the next so many fail
    int shares = 0;           ///< so often a beginning was shared
    int appends = 0;          ///< and a snapshot of the rest was put behind it
    std::optional<std::size_t>
        unread_from;  ///< prompts of so many bytes are not read: at least half as many tokens
    std::vector<std::size_t> rows_of_steps;

    std::int64_t cells() const {
        std::set<std::uint64_t> all;
        for (const auto& [id, cells] : cells_) all.insert(cells.begin(), cells.end());
        return std::ssize(all);
    }
    std::size_t sequences() const { return held_.size(); }

    const ModelFacts& facts() const override { return facts_; }
    PromptTokens tokenize(std::string_view text) const override {
        PromptTokens out;
        if (unread_from && text.size() >= *unread_from)
            return {.at_least = base::Tokens{std::ssize(text) / 2}};
        for (const char c : text) out.tokens.push_back(static_cast<unsigned char>(c) + 1);
        return out;
    }
    std::string piece(TokenId token) const override {
        return token == kEnd ? std::string() : std::string(1, static_cast<char>(token - 1));
    }
    bool is_end(TokenId token) const override { return token == kEnd; }
    base::Result<PromptTokens> chat_tokens(
        std::span<const answer::Message> messages) const override {
        return tokenize(chat_text(messages).value());
    }
    base::Result<std::string> chat_text(std::span<const answer::Message> messages) const override {
        if (throws) throw std::runtime_error("planted");
        std::string text;
        for (const auto& message : messages) text += message.role + ":" + message.content + "\n";
        if (text.starts_with("system:refuse"))
            return base::usage_error("no system here", "leave it out");
        return text;
    }
    /// A grammar is one text in quotes here: `root ::= "text"`, which allows that text (see
    /// ExactText).
    base::Result<std::unique_ptr<TokenConstraint>> constrain(const std::string& grammar) override {
        constexpr std::string_view kBegin = "root ::= \"";
        if (!grammar.starts_with(kBegin) || !grammar.ends_with('"'))
            return base::usage_error("the test model reads no such grammar",
                                     "write root ::= \"text\"");
        return std::make_unique<ExactText>(
            grammar.substr(kBegin.size(), grammar.size() - kBegin.size() - 1));
    }

    DecodeStatus decode(std::span<const Run> runs) override {
        std::size_t rows = 0;
        logits_.assign(runs.size(), {});
        if (next_status != DecodeStatus::kOk) return std::exchange(next_status, DecodeStatus::kOk);
        for (std::size_t i = 0; i < runs.size(); ++i) {
            auto& held = held_[runs[i].sequence];
            EXPECT_EQ(std::ssize(held), runs[i].position.count)
                << "positions go on where they ended";
            held.insert(held.end(), runs[i].tokens.begin(), runs[i].tokens.end());
            fill(runs[i].sequence);
            EXPECT_LE(std::ssize(held), facts_.window.count);
            rows += runs[i].tokens.size();
            if (runs[i].wants_logits) logits_[i] = row_after(held);
        }
        EXPECT_LE(std::ssize(held_), facts_.max_sequences);
        EXPECT_LE(cells(), facts_.pool.count);
        rows_of_steps.push_back(rows);
        return DecodeStatus::kOk;
    }
    std::span<const float> logits(std::size_t index) const override {
        EXPECT_FALSE(logits_.at(index).empty());
        return logits_[index];
    }
    void remove(SequenceId sequence) override {
        held_.erase(sequence);
        cells_.erase(sequence);
    }
    void share(SequenceId from, SequenceId to, base::Tokens length) override {
        EXPECT_TRUE(facts_.shares);
        EXPECT_FALSE(held_.contains(to));
        EXPECT_LE(length.count, std::ssize(held_.at(from)));
        held_[to].assign(held_[from].begin(), held_[from].begin() + length.count);
        cells_[to].assign(cells_[from].begin(), cells_[from].begin() + length.count);
        EXPECT_LE(std::ssize(held_), facts_.max_sequences);
        ++shares;
    }
    std::vector<std::byte> snapshot(SequenceId sequence, base::Tokens from) override {
        const auto found = held_.find(sequence);
        EXPECT_NE(found, held_.end()) << "only what is in KV is copied";
        const auto bytes =
            std::as_bytes(std::span(found->second).subspan(static_cast<std::size_t>(from.count)));
        return {bytes.begin(), bytes.end()};
    }
    bool append(SequenceId sequence, base::Tokens length,
                std::span<const std::byte> snapshot) override {
        EXPECT_TRUE(facts_.shares && held_.contains(sequence));
        if (fail_restores > 0 && fail_restores-- > 0) return false;
        EXPECT_LE(cells() + length.count, facts_.pool.count);
        const auto tokens = tokens_of(snapshot);
        EXPECT_EQ(std::ssize(tokens), length.count);
        held_[sequence].insert(held_[sequence].end(), tokens.begin(), tokens.end());
        fill(sequence);
        ++appends;
        return true;
    }
    bool restore(SequenceId sequence, base::Tokens length, base::Tokens keep,
                 std::span<const std::byte> snapshot) override {
        EXPECT_FALSE(held_.contains(sequence));
        EXPECT_LT(std::ssize(held_), facts_.max_sequences);
        if (fail_restores > 0 && fail_restores-- > 0) return false;
        std::vector<TokenId> tokens = tokens_of(snapshot);
        EXPECT_EQ(std::ssize(tokens), length.count);
        if (cells() + length.count > facts_.pool.count) return false;
        tokens.resize(static_cast<std::size_t>(keep.count));
        held_[sequence] = std::move(tokens);
        fill(sequence);
        return true;
    }

    /// The answer to `prompt` without its end token.
    std::string answer_to(const std::string& prompt) const {
        if (const auto found = answers.find(prompt); found != answers.end()) return found->second;
        std::uint64_t hash = 1469598103934665603U;
        for (const char c : prompt) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
        base::Random random(hash);
        std::string text;
        for (auto left = random.below(60); left > 0; --left)
            text += static_cast<char>('a' + random.below(26));
        return text;
    }

private:
    static std::vector<TokenId> tokens_of(std::span<const std::byte> snapshot) {
        std::vector<TokenId> tokens(snapshot.size() / sizeof(TokenId));
        std::memcpy(tokens.data(), snapshot.data(), snapshot.size());
        return tokens;
    }
    void fill(SequenceId sequence) {
        while (cells_[sequence].size() < held_[sequence].size())
            cells_[sequence].push_back(next_cell_++);
    }
    /// The prompt is the longest beginning of what is held after which its answer follows: tests
    /// keep prompts newline-ended.
    std::vector<float> row_after(const std::vector<TokenId>& held) const {
        std::string text;
        for (const TokenId token : held) text += piece(token);
        const std::size_t end = text.rfind('\n') + 1;
        const std::string answer = answer_to(text.substr(0, end));
        const std::size_t at = text.size() - end;
        std::vector<float> row(static_cast<std::size_t>(facts_.vocabulary),
                               no_numbers ? std::nanf("") : 0.0F);
        if (!no_numbers)
            row[at < answer.size() ? static_cast<unsigned char>(answer[at]) + 1U : kEnd] = 50.0F;
        return row;
    }

    ModelFacts facts_;
    std::map<SequenceId, std::vector<TokenId>> held_;
    std::map<SequenceId, std::vector<std::uint64_t>> cells_;  ///< of each token
    std::uint64_t next_cell_ = 0;
    std::vector<std::vector<float>> logits_;
};

}  // namespace fullstop::engine
