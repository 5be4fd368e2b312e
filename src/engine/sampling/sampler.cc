// Gathers the tokens that can be drawn at all, cuts, draws. Sorting happens only where a cut needs
// it.
#include "engine/sampling/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace fullstop::engine {
namespace {

/// exp(-30) is 1e-13: a whole vocabulary of such tokens has less probability than one step of the
/// random number.
constexpr float kLeastLogWeight = -30.0F;
/// Least weights down to which top_p sorts, tried in turn; the last one takes everything.
constexpr std::array kDepths = {1e-2F, 1e-4F, 0.0F};

}  // namespace

/// Eight independent maxima, so that the compiler may use vector registers; NaN never wins a
/// comparison.
float Sampler::highest_of(std::span<const float> logits) {
    std::array<float, 8> best;
    best.fill(-std::numeric_limits<float>::infinity());
    std::size_t i = 0;
    for (; i + best.size() <= logits.size(); i += best.size())
        for (std::size_t lane = 0; lane < best.size(); ++lane)
            best[lane] = logits[i + lane] > best[lane] ? logits[i + lane] : best[lane];
    for (; i < logits.size(); ++i) best[0] = logits[i] > best[0] ? logits[i] : best[0];
    return *std::ranges::max_element(best);
}

bool Sampler::more_probable(const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

double Sampler::sum_of(std::span<const Candidate> candidates) {
    double sum = 0;
    for (const Candidate& candidate : candidates) sum += static_cast<double>(candidate.weight);
    return sum;
}

std::optional<TokenId> Sampler::pick(std::span<const float> logits, TokenConstraint* constraint) {
    const auto seen = adjusted(logits);
    const auto token = constraint == nullptr ? choose(seen) : choose_allowed(seen, *constraint);
    if (token && (sampling_.frequency_penalty != 0 || sampling_.presence_penalty != 0))
        ++chosen_[*token];
    return token;
}

/// The logits themselves unless bias or penalties change some.
std::span<const float> Sampler::adjusted(std::span<const float> logits) {
    if (sampling_.logit_bias.empty() && chosen_.empty()) return logits;
    adjusted_.assign(logits.begin(), logits.end());
    for (const auto& [token, bias] : sampling_.logit_bias)
        adjusted_.at(static_cast<std::size_t>(token)) += bias;
    for (const auto& [token, times] : chosen_)
        adjusted_.at(static_cast<std::size_t>(token)) -=
            static_cast<float>(sampling_.frequency_penalty * times + sampling_.presence_penalty);
    return adjusted_;
}

std::optional<TokenId> Sampler::choose(std::span<const float> logits) {
    const float highest = highest_of(logits);
    if (!std::isfinite(highest)) return std::nullopt;
    if (sampling_.temperature <= 0)
        return static_cast<TokenId>(std::ranges::find(logits, highest) - logits.begin());
    gather(logits, highest);
    keep_top_k();
    keep_top_p();
    // The most probable token weighs 1, so it always stays.
    if (sampling_.min_p > 0)
        std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < sampling_.min_p; });
    return draw();
}

/// In order of id: a vocabulary is too large to be sorted for every token.
void Sampler::gather(std::span<const float> logits, float highest) {
    candidates_.clear();
    const auto temperature = static_cast<float>(sampling_.temperature);
    const float least = highest + kLeastLogWeight * temperature;
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (logits[i] >= least)
            candidates_.push_back(
                {static_cast<TokenId>(i), std::exp((logits[i] - highest) / temperature)});
}

void Sampler::keep_top_k() {
    if (sampling_.top_k <= 0 || std::cmp_greater_equal(sampling_.top_k, candidates_.size())) return;
    const auto end = candidates_.begin() + sampling_.top_k;
    std::partial_sort(candidates_.begin(), end, candidates_.end(), more_probable);
    candidates_.erase(end, candidates_.end());
}

/// Sorts only as deep as the wanted share of the probability reaches.
void Sampler::keep_top_p() {
    if (sampling_.top_p >= 1) return;
    const double wanted = sampling_.top_p * sum_of(candidates_);
    auto deep = candidates_.end();
    for (const float least : kDepths) {
        deep = std::partition(candidates_.begin(), candidates_.end(),
                              [&](const Candidate& c) { return c.weight >= least; });
        if (sum_of({candidates_.begin(), deep}) >= wanted) break;
    }
    std::sort(candidates_.begin(), deep, more_probable);
    double sum = 0;
    auto end = candidates_.begin();
    while (end != deep && (end == candidates_.begin() || sum < wanted))
        sum += static_cast<double>((end++)->weight);
    candidates_.erase(end, candidates_.end());
}

TokenId Sampler::draw() {
    double left = random_.uniform() * sum_of(candidates_);
    for (const Candidate& candidate : candidates_) {
        left -= static_cast<double>(candidate.weight);
        if (left < 0) return candidate.id;
    }
    return candidates_.back().id;
}

}  // namespace fullstop::engine
