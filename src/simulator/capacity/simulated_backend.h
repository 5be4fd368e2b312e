// engine::Backend without a model: tokens from a seed, time from a cost model, and a strict account
// of KV cells.
//
// One byte is one token. A prompt ends with its first newline; what follows it is the answer, a
// function of (seed, prompt) alone, so a token that is lost, doubled or computed at the wrong place
// stops the program. Time is virtual: decodes and swaps say how long they would have taken.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "engine/backend.h"
#include "engine/cost/cost_model.h"
#include "engine/cost/swap_cost.h"

namespace fullstop::simulator {

/// Between `low` and `high`, both included, each as likely as the others.
struct TokenRange {
    base::Tokens low{1}, high{1};
    base::Tokens draw(base::Random& random) const;
    bool operator==(const TokenRange&) const = default;
};

class SimulatedBackend final : public engine::Backend {
public:
    static constexpr engine::TokenId kEnd = 0;
    static constexpr std::int64_t kVocabulary = 257;
    /// Of a snapshot: it holds the tokens themselves.
    static constexpr base::Bytes kBytesPerToken{sizeof(engine::TokenId)};

    struct Options {
        std::uint64_t seed = 1;
        bool streams = false;  ///< layout: each sequence owns its window, else all share the pool
        base::Tokens pool{4096};    ///< whole blocks
        base::Tokens window{4096};  ///< of one sequence
        std::int64_t max_sequences = 8;
        engine::SwapCost swap{};              ///< of host memory
        std::int64_t restores_that_fail = 0;  ///< every so many-th restore() says false; 0: none
        TokenRange natural{{250},
                           {250}};  ///< output tokens after which the model would end by itself
        double noise = 0;           ///< standard deviation of the logarithm of each step's time
    };
    SimulatedBackend(Options options, engine::CostModel cost);

    /// This prompt's answer ends by itself after `length` tokens, whatever would have been drawn.
    void set_length(std::string_view prompt, base::Tokens length);
    /// The answer to `prompt` up to its natural end.
    std::string answer_to(std::string_view prompt) const;
    /// Decode number `step`, from 0, gives `status` instead of computing. Aborted and fatal ones
    /// leave half of the runs in KV.
    void fail(std::int64_t step, engine::DecodeStatus status) { faults_[step] = status; }

    /// What decodes and swaps since the last call would have taken.
    base::Duration take_elapsed();
    std::int64_t steps() const { return steps_; }
    /// Rows of the last decode, and how many of them were single ones: next tokens.
    std::int64_t last_rows() const { return last_rows_; }
    std::int64_t last_decodes() const { return last_decodes_; }
    base::Tokens cells() const { return cells_; }
    std::size_t sequences() const { return held_.size(); }

    const engine::ModelFacts& facts() const override { return facts_; }
    engine::PromptTokens tokenize(std::string_view text) const override;
    std::string piece(engine::TokenId token) const override;
    bool is_end(engine::TokenId token) const override { return token == kEnd; }
    base::Result<engine::PromptTokens> chat_tokens(
        std::span<const answer::Message> messages) const override;
    base::Result<std::string> chat_text(std::span<const answer::Message> messages) const override;
    base::Result<std::unique_ptr<engine::TokenConstraint>> constrain(
        const std::string& grammar) override;
    engine::DecodeStatus decode(std::span<const engine::Run> runs) override;
    std::span<const float> logits(std::size_t index) const override;
    void remove(engine::SequenceId sequence) override;
    std::vector<std::byte> snapshot(engine::SequenceId sequence, base::Tokens from) override;
    bool append(engine::SequenceId sequence, base::Tokens length,
                std::span<const std::byte> snapshot) override;
    bool restore(engine::SequenceId sequence, base::Tokens length, base::Tokens keep,
                 std::span<const std::byte> snapshot) override;
    void share(engine::SequenceId from, engine::SequenceId to, base::Tokens length) override;

private:
    /// One sequence in KV. The hash of its prompt decides its answer.
    struct Held {
        std::vector<engine::TokenId> tokens;
        std::uint64_t hash = 0;
        base::Tokens prompt;  ///< with its newline; 0 while that has not come
        base::Tokens natural;
        /// Cells that other sequences may hold too, in the order of tokens; those behind them are
        /// its own.
        std::vector<std::uint64_t> shared = {};
        base::Tokens length() const { return {std::ssize(tokens)}; }
    };
    std::uint64_t first_hash() const;
    base::Tokens natural_length(std::uint64_t hash) const;
    static engine::TokenId answer_token(std::uint64_t hash, std::int64_t at);
    void take_in(Held& held, engine::TokenId token);
    void compute(const engine::Run& run, std::size_t index);
    bool fails();
    void take_from(Held& held, std::span<const std::byte> snapshot, base::Tokens keep);

    Options options_;
    engine::CostModel cost_;
    engine::ModelFacts facts_;
    base::Random noise_;
    std::map<engine::SequenceId, Held> held_;
    std::map<std::uint64_t, base::Tokens> lengths_;  ///< by hash of the prompt
    std::map<std::int64_t, engine::DecodeStatus> faults_;
    std::vector<std::vector<float>> rows_;  ///< by run; all low but one
    std::vector<engine::TokenId> chosen_;   ///< the one that is not; -1: logits were not wanted
    std::map<std::uint64_t, int> holders_;  ///< of cells that were ever shared
    std::uint64_t next_cell_ = 0;
    base::Tokens cells_;
    base::Duration elapsed_{};
    std::int64_t restores_ = 0;
    std::int64_t steps_ = 0, last_rows_ = 0, last_decodes_ = 0;
};

}  // namespace fullstop::simulator
