// Which token comes next: one seeded choice over the logits of one row.
//
// The choice depends on the logits, the seed and the tokens chosen before alone, so the same prompt
// and seed give the same answer whoever else is being served, as long as the backend's logits do.
// Where a form was promised, the choice is among the tokens that it allows (constrained_choice.cc).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "engine/sampling/token_constraint.h"

namespace fullstop::engine {

/// As in OpenAI's and llama.cpp's interfaces. Applied in this order: bias, penalties, temperature,
/// top_k, top_p, min_p.
struct Sampling {
    double temperature = 1.0;  ///< 0: the most probable token, always
    double top_p = 1.0;        ///< 1: off
    std::int64_t top_k = 0;    ///< 0: off
    double min_p = 0.0;        ///< 0: off; least probability relative to the most probable token
    std::uint64_t seed = 0;
    double frequency_penalty =
        0;  ///< taken from a token's logit for each time it was chosen before in this answer
    double presence_penalty = 0;                             ///< taken from it once if it was
    std::vector<std::pair<TokenId, float>> logit_bias = {};  ///< added to these tokens' logits
    bool operator==(const Sampling&) const = default;
};

class Sampler {
public:
    explicit Sampler(const Sampling& sampling) : sampling_(sampling), random_(sampling.seed) {}

    /// Among the tokens that `constraint` allows; null: all. Absent when none of those has a finite
    /// logit: there is nothing to choose from. Of equal logits the lower id wins.
    std::optional<TokenId> pick(std::span<const float> logits,
                                TokenConstraint* constraint = nullptr);

private:
    struct Candidate {
        TokenId id;
        float weight;  ///< probability relative to the most probable token
        enum class State : std::uint8_t {
            kUnknown,
            kAllowed,
            kRefused,
            kCutOff
        } state = State::kUnknown;  ///< where there is a constraint
    };
    std::span<const float> adjusted(std::span<const float> logits);
    std::optional<TokenId> choose(std::span<const float> logits);
    void gather(std::span<const float> logits, float highest);
    void keep_top_k();
    void keep_top_p();
    TokenId draw();
    static bool more_probable(const Candidate& a, const Candidate& b);
    static double sum_of(std::span<const Candidate> candidates);
    static float highest_of(std::span<const float> logits);

    // constrained_choice.cc
    enum class Cut { kWithin, kOutside, kUnclear };
    std::optional<TokenId> choose_allowed(std::span<const float> logits,
                                          TokenConstraint& constraint);
    std::optional<TokenId> best_allowed(std::span<const float> logits, float highest,
                                        TokenConstraint& constraint);
    Candidate* draw_uncertain();
    std::optional<TokenId> draw_allowed(TokenConstraint& constraint);
    Cut cut_of(const Candidate& drawn) const;
    Cut top_k_of(const Candidate& drawn) const;
    Cut top_p_of(const Candidate& drawn) const;
    Cut min_p_of(const Candidate& drawn) const;
    bool ask_more(TokenConstraint& constraint);
    void ask(TokenConstraint& constraint, std::size_t from, std::size_t to);
    std::span<const float> masked(std::span<const float> logits, TokenConstraint& constraint);

    Sampling sampling_;
    base::Random random_;
    std::vector<Candidate> candidates_;
    std::map<TokenId, int> chosen_;  ///< how often, where penalties need it
    std::vector<float> adjusted_;
    std::size_t known_ = 0;  ///< so many candidates at the front are the most probable ones, in
                             ///< order, and were asked about
    std::vector<TokenId> asked_;
    std::vector<float> masked_;
};

}  // namespace fullstop::engine
