// libllama's sampler marks refused tokens with a logit of -infinity; any array of tokens will do, also one of a single token.
#include "adapters/llama/grammar.h"

#include <cmath>
#include <exception>
#include <utility>

#include "engine/utf8.h"

namespace fullstop::adapters::llama {
namespace {

using engine::TokenId;

struct FreeSampler {
    void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using Sampler = std::unique_ptr<llama_sampler, FreeSampler>;

class Grammar final : public engine::TokenConstraint {
public:
    Grammar(const llama_vocab* vocabulary, std::shared_ptr<const PlainTokens> plain, Sampler sampler)
        : vocabulary_(vocabulary), plain_(std::move(plain)), sampler_(std::move(sampler)) {}

    void keep_allowed(std::vector<TokenId>& tokens) override {
        std::erase_if(tokens, [&](TokenId token) { return lost_ || (!(*plain_)[static_cast<std::size_t>(token)] && !llama_vocab_is_eog(vocabulary_, token)); });
        entries_.clear();
        for (const TokenId token : tokens) entries_.push_back({.id = token, .logit = 0, .p = 0});
        if (entries_.empty()) return;
        llama_token_data_array all{.data = entries_.data(), .size = entries_.size(), .selected = -1, .sorted = false};
        llama_sampler_apply(sampler_.get(), &all);
        tokens.clear();
        for (const llama_token_data& entry : entries_)
            if (std::isfinite(entry.logit)) tokens.push_back(entry.id);
    }

    /// libllama throws when the token fits nowhere. It was allowed, so this is a fault of one of the two; then nothing is allowed
    /// any more and the answer says so.
    void accept(TokenId token) override {
        try {
            llama_sampler_accept(sampler_.get(), token);
        } catch (const std::exception&) {
            lost_ = true;
        }
    }

private:
    const llama_vocab* vocabulary_;
    std::shared_ptr<const PlainTokens> plain_;
    Sampler sampler_;
    std::vector<llama_token_data> entries_;
    bool lost_ = false;
};

}  // namespace

bool is_plain(std::string_view piece) {
    if (piece.empty() || piece.find('\0') != std::string_view::npos) return false;
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
    for (int i = 0; i < 3 && !piece.empty() && continues(piece.front()); ++i) piece.remove_prefix(1);
    while (!piece.empty()) {
        const auto [shape, length] = engine::front_character(piece);
        if (shape == engine::CharacterShape::kBroken) return false;
        piece.remove_prefix(length);
    }
    return true;
}

base::Result<std::unique_ptr<engine::TokenConstraint>> make_grammar(const llama_vocab* vocabulary, std::shared_ptr<const PlainTokens> plain,
                                                                    const std::string& grammar) {
    Sampler sampler(llama_sampler_init_grammar(vocabulary, grammar.c_str(), "root"));
    if (sampler == nullptr) return base::usage_error("libllama does not take the grammar of this response format", "ask for a simpler one");
    return std::make_unique<Grammar>(vocabulary, std::move(plain), std::move(sampler));
}

}  // namespace fullstop::adapters::llama
