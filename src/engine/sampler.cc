// Gathers the few tokens that can be drawn at all, orders them, cuts, draws.
#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fullstop::engine {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
/// exp(-30) is 1e-13: a whole vocabulary of such tokens has less probability than one step of the random number.
constexpr double kLeastLogWeight = -30.0;

/// Eight independent maxima, so that the compiler may use vector registers; NaN never wins a comparison.
float highest_of(std::span<const float> logits) {
    std::array<float, 8> best;
    best.fill(kNothing);
    std::size_t i = 0;
    for (; i + best.size() <= logits.size(); i += best.size())
        for (std::size_t lane = 0; lane < best.size(); ++lane) best[lane] = logits[i + lane] > best[lane] ? logits[i + lane] : best[lane];
    for (; i < logits.size(); ++i) best[0] = logits[i] > best[0] ? logits[i] : best[0];
    return *std::ranges::max_element(best);
}

}  // namespace

std::optional<TokenId> Sampler::pick(std::span<const float> logits) {
    const float highest = highest_of(logits);
    if (!std::isfinite(highest)) return std::nullopt;
    if (sampling_.temperature <= 0) return static_cast<TokenId>(std::ranges::find(logits, highest) - logits.begin());
    gather(logits, highest);
    narrow();
    return draw();
}

void Sampler::gather(std::span<const float> logits, float highest) {
    candidates_.clear();
    const double least = highest + kLeastLogWeight * sampling_.temperature;
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (logits[i] >= least)
            candidates_.push_back({static_cast<TokenId>(i), logits[i], std::exp((static_cast<double>(logits[i]) - highest) / sampling_.temperature)});
    std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; });
}

void Sampler::narrow() {
    std::size_t keep = candidates_.size();
    if (sampling_.top_k > 0) keep = std::min(keep, static_cast<std::size_t>(sampling_.top_k));
    if (sampling_.top_p < 1) {
        double all = 0, sum = 0;
        for (std::size_t i = 0; i < keep; ++i) all += candidates_[i].weight;
        std::size_t enough = 0;
        while (enough < keep && (enough == 0 || sum < sampling_.top_p * all)) sum += candidates_[enough++].weight;
        keep = enough;
    }
    if (sampling_.min_p > 0) {
        std::size_t probable = 1;
        while (probable < keep && candidates_[probable].weight >= sampling_.min_p * candidates_[0].weight) ++probable;
        keep = probable;
    }
    candidates_.resize(keep);
}

TokenId Sampler::draw() {
    double all = 0;
    for (const Candidate& candidate : candidates_) all += candidate.weight;
    double left = random_.uniform() * all;
    for (const Candidate& candidate : candidates_) {
        left -= candidate.weight;
        if (left < 0) return candidate.id;
    }
    return candidates_.back().id;
}

}  // namespace fullstop::engine
