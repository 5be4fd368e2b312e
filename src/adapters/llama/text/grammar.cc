// libllama's sampler marks refused tokens with a logit of -infinity; any array of tokens will do,
// also one of a single token.
#include "adapters/llama/text/grammar.h"

#include <cmath>
#include <exception>
#include <optional>
#include <utility>

#include "base/utf8.h"

namespace fullstop::adapters::llama {
namespace {

using engine::TokenId;

struct FreeSampler {
    void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using Sampler = std::unique_ptr<llama_sampler, FreeSampler>;

/// The unfinished character at the end of `bytes`; absent: some of them are no part of UTF-8.
std::optional<std::string> unfinished(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto [shape, length] = base::front_character(bytes);
        if (shape == base::CharacterShape::kBroken) return std::nullopt;
        if (shape == base::CharacterShape::kUnfinished) break;
        bytes.remove_prefix(length);
    }
    return std::string(bytes);
}

class Grammar final : public engine::TokenConstraint {
public:
    Grammar(const llama_vocab* vocabulary, std::shared_ptr<const TokenBytes> bytes, Sampler sampler)
        : vocabulary_(vocabulary), bytes_(std::move(bytes)), sampler_(std::move(sampler)) {}

    void keep_allowed(std::vector<TokenId>& tokens) override {
        std::erase_if(tokens, [&](TokenId token) {
            return lost_ ||
                   (!bytes_->fits(token, pending_) && !llama_vocab_is_eog(vocabulary_, token));
        });
        entries_.clear();
        for (const TokenId token : tokens) entries_.push_back({.id = token, .logit = 0, .p = 0});
        if (entries_.empty()) return;
        llama_token_data_array all{
            .data = entries_.data(), .size = entries_.size(), .selected = -1, .sorted = false};
        llama_sampler_apply(sampler_.get(), &all);
        tokens.clear();
        for (const llama_token_data& entry : entries_)
            if (std::isfinite(entry.logit)) tokens.push_back(entry.id);
    }

    /// libllama throws when the token fits nowhere. It was allowed, so this is a fault of one of
    /// the two; then nothing is allowed any more and the answer says so.
    void accept(TokenId token) override {
        pending_ = bytes_->pending_after(token, pending_);
        try {
            llama_sampler_accept(sampler_.get(), token);
        } catch (const std::exception&) {
            lost_ = true;
        }
    }

private:
    const llama_vocab* vocabulary_;
    std::shared_ptr<const TokenBytes> bytes_;
    Sampler sampler_;
    std::string pending_;  ///< the bytes of a character that is not finished
    std::vector<llama_token_data> entries_;
    bool lost_ = false;
};

}  // namespace

void TokenBytes::add(std::string_view piece) {
    const auto token = static_cast<TokenId>(shapes_.size());
    shapes_.push_back(Shape::kNothing);
    if (piece.empty() || piece.contains('\0')) return;
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
    std::string_view rest = piece;
    for (int i = 0; i < 3 && !rest.empty() && continues(rest.front()); ++i) rest.remove_prefix(1);
    const auto pending = unfinished(rest);
    if (!pending) return;
    const bool whole = rest.size() == piece.size() && pending->empty();
    shapes_.back() = whole ? Shape::kWhole : Shape::kPart;
    if (!whole) parts_.emplace(token, piece);
}

bool TokenBytes::fits(TokenId token, std::string_view pending) const {
    const Shape shape = shapes_[static_cast<std::size_t>(token)];
    if (shape != Shape::kPart) return shape == Shape::kWhole && pending.empty();
    return unfinished(std::string(pending) + parts_.at(token)).has_value();
}

std::string TokenBytes::pending_after(TokenId token, std::string_view pending) const {
    if (shapes_[static_cast<std::size_t>(token)] != Shape::kPart) return {};
    return unfinished(std::string(pending) + parts_.at(token)).value_or("");
}

base::Result<std::unique_ptr<engine::TokenConstraint>> make_grammar(
    const llama_vocab* vocabulary, std::shared_ptr<const TokenBytes> bytes,
    const std::string& grammar) {
    Sampler sampler(llama_sampler_init_grammar(vocabulary, grammar.c_str(), "root"));
    if (sampler == nullptr)
        return base::usage_error("libllama does not take the grammar of this response format",
                                 "ask for a simpler one");
    return std::make_unique<Grammar>(vocabulary, std::move(bytes), std::move(sampler));
}

}  // namespace fullstop::adapters::llama
