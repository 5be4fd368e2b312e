// Which token comes next: one seeded choice over the logits of one row.
//
// The choice depends on the logits, the seed and the tokens chosen before alone, so the same prompt and seed give
// the same answer whoever else is being served, as long as the backend's logits do.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/units.h"

namespace fullstop::engine {

using TokenId = std::int32_t;

/// As in OpenAI's and llama.cpp's interfaces. Applied in this order: bias, penalties, temperature, top_k, top_p, min_p.
struct Sampling {
    double temperature = 1.0;  ///< 0: the most probable token, always
    double top_p = 1.0;        ///< 1: off
    std::int64_t top_k = 0;    ///< 0: off
    double min_p = 0.0;        ///< 0: off; least probability relative to the most probable token
    std::uint64_t seed = 0;
    double frequency_penalty = 0;                            ///< taken from a token's logit for each time it was chosen before in this answer
    double presence_penalty = 0;                             ///< taken from it once if it was
    std::vector<std::pair<TokenId, float>> logit_bias = {};  ///< added to these tokens' logits
    bool operator==(const Sampling&) const = default;
};

class Sampler {
public:
    explicit Sampler(const Sampling& sampling) : sampling_(sampling), random_(sampling.seed) {}

    /// Absent when no logit is finite: the model produced nothing to choose from. Of equal logits the lower id wins.
    std::optional<TokenId> pick(std::span<const float> logits);

private:
    struct Candidate {
        TokenId id;
        float weight;  ///< probability relative to the most probable token
    };
    std::span<const float> adjusted(std::span<const float> logits);
    std::optional<TokenId> choose(std::span<const float> logits);
    void gather(std::span<const float> logits, float highest);
    void keep_top_k();
    void keep_top_p();
    TokenId draw();
    static bool more_probable(const Candidate& a, const Candidate& b);
    static double sum_of(std::span<const Candidate> candidates);

    Sampling sampling_;
    base::Random random_;
    std::vector<Candidate> candidates_;
    std::map<TokenId, int> chosen_;  ///< how often, where penalties need it
    std::vector<float> adjusted_;
};

}  // namespace fullstop::engine
