// A choice among the tokens that a constraint allows, without asking it about the whole vocabulary,
// which takes longer than a step of a small model.
//
// What holds: the token is a sample of the distribution in which refused tokens have no
// probability, and top_k, top_p and min_p cut that distribution, as if everything had been asked
// about first. (To draw from the cut distribution of all tokens, and from that of the allowed ones
// only when the token is refused, would be a mixture of two.)
// - Temperature 0: the most probable ones are asked about in their order; the first that is allowed
//   is it.
// - Otherwise tokens are drawn without putting back. Such an order is that of independent
//   exponential clocks whose rates are the weights, so the first one in it that is allowed and
//   within the cuts comes as often as its share among those.
// - Whether a token is within the cuts depends on which tokens above it are allowed, and on the sum
//   of all that are. The most probable ones are asked about until what is unknown of the others
//   makes no difference to this token.
// - Where that takes long, all are asked about. Tokens below e^-30 of the most probable one are
//   never drawn in the ways before that, as without a constraint; among all they count when nothing
//   above them is allowed.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/sampling/sampler.h"

namespace fullstop::engine {
namespace {

/// Each costs a microsecond and one look over the candidates; a form that refuses so many in turn
/// allows little.
constexpr int kMostDraws = 16;
/// Of the most probable tokens so many are asked about, then as many as this; beyond the last one,
/// about all.
constexpr std::array<std::size_t, 3> kAskedAbout = {32, 512, 8192};

}  // namespace

std::optional<TokenId> Sampler::choose_allowed(std::span<const float> logits,
                                               TokenConstraint& constraint) {
    const float highest = highest_of(logits);
    if (!std::isfinite(highest)) return std::nullopt;
    known_ = 0;
    std::optional<TokenId> token;
    if (sampling_.temperature <= 0) {
        token = best_allowed(logits, highest, constraint);
    } else {
        gather(logits, highest);
        token = draw_allowed(constraint);
    }
    return token ? token : choose(masked(logits, constraint));
}

/// Absent: none of the most probable ones is allowed.
std::optional<TokenId> Sampler::best_allowed(std::span<const float> logits, float highest,
                                             TokenConstraint& constraint) {
    candidates_ = {
        {static_cast<TokenId>(std::ranges::find(logits, highest) - logits.begin()), highest}};
    ask(constraint, 0, 1);
    if (candidates_.front().state == Candidate::State::kAllowed) return candidates_.front().id;
    candidates_.clear();
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (std::isfinite(logits[i])) candidates_.push_back({static_cast<TokenId>(i), logits[i]});
    ask_more(constraint);
    const auto found =
        std::ranges::find(candidates_, Candidate::State::kAllowed, &Candidate::state);
    return found == candidates_.end() ? std::nullopt : std::optional(found->id);
}

/// Absent: so many in turn were refused, or too much is unknown.
std::optional<TokenId> Sampler::draw_allowed(TokenConstraint& constraint) {
    for (int i = 0; i < kMostDraws; ++i) {
        Candidate* drawn = draw_uncertain();
        if (drawn == nullptr) return std::nullopt;
        if (drawn->state == Candidate::State::kUnknown) {
            const auto at = static_cast<std::size_t>(drawn - candidates_.data());
            ask(constraint, at, at + 1);
        }
        if (drawn->state != Candidate::State::kAllowed) continue;
        const TokenId id = drawn->id;
        Cut cut = cut_of(*drawn);
        while (cut == Cut::kUnclear) {
            if (!ask_more(constraint)) return std::nullopt;
            drawn = &*std::ranges::find(candidates_, id, &Candidate::id);  // they were sorted
            cut = cut_of(*drawn);
        }
        if (cut == Cut::kWithin) return id;
        drawn->state = Candidate::State::kCutOff;
    }
    return std::nullopt;
}

/// Of those that are neither refused nor cut off, each as often as its weight says. Null: there are
/// none.
Sampler::Candidate* Sampler::draw_uncertain() {
    const auto open = [](const Candidate& c) {
        return c.state == Candidate::State::kUnknown || c.state == Candidate::State::kAllowed;
    };
    double sum = 0;
    for (const Candidate& candidate : candidates_)
        if (open(candidate)) sum += static_cast<double>(candidate.weight);
    double left = random_.uniform() * sum;
    Candidate* last = nullptr;
    for (Candidate& candidate : candidates_) {
        if (!open(candidate)) continue;
        last = &candidate;
        left -= static_cast<double>(candidate.weight);
        if (left < 0) break;
    }
    return last;
}

// Whether one that is allowed is within each cut
// -------------------------------------------------------------------------------------------------

Sampler::Cut Sampler::cut_of(const Candidate& drawn) const {
    Cut all = Cut::kWithin;
    for (const Cut cut : {top_k_of(drawn), top_p_of(drawn), min_p_of(drawn)}) {
        if (cut == Cut::kOutside) return cut;
        if (cut == Cut::kUnclear) all = cut;
    }
    return all;
}

Sampler::Cut Sampler::top_k_of(const Candidate& drawn) const {
    if (sampling_.top_k <= 0) return Cut::kWithin;
    std::int64_t allowed = 0, unknown = 0;
    for (const Candidate& other : candidates_) {
        if (!more_probable(other, drawn)) continue;
        if (other.state == Candidate::State::kUnknown) ++unknown;
        if (other.state == Candidate::State::kAllowed || other.state == Candidate::State::kCutOff)
            ++allowed;
    }
    if (allowed >= sampling_.top_k) return Cut::kOutside;
    return allowed + unknown >= sampling_.top_k ? Cut::kUnclear : Cut::kWithin;
}

/// The share is one of what top_k leaves. It is kept as long as those above it do not reach it.
Sampler::Cut Sampler::top_p_of(const Candidate& drawn) const {
    if (sampling_.top_p >= 1) return Cut::kWithin;
    double above = 0, total = 0, unknown_above = 0, unknown = 0;
    std::int64_t counted = 0;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
        const Candidate& other = candidates_[i];
        if (other.state == Candidate::State::kRefused) continue;
        const auto weight = static_cast<double>(other.weight);
        const bool known = other.state != Candidate::State::kUnknown,
                   is_above = more_probable(other, drawn);
        (known ? total : unknown) += weight;
        if (is_above) (known ? above : unknown_above) += weight;
        if (i < known_ && ++counted == sampling_.top_k) {  // what follows was cut
            unknown = 0;
            break;
        }
    }
    if (sampling_.top_k > 0 && unknown > 0) return Cut::kUnclear;
    if (above >= sampling_.top_p * (total + unknown)) return Cut::kOutside;
    return above + unknown_above < sampling_.top_p * total ? Cut::kWithin : Cut::kUnclear;
}

Sampler::Cut Sampler::min_p_of(const Candidate& drawn) const {
    if (sampling_.min_p <= 0) return Cut::kWithin;
    float allowed = drawn.weight, possible = drawn.weight;
    for (const Candidate& other : candidates_) {
        if (other.state == Candidate::State::kUnknown) possible = std::max(possible, other.weight);
        if (other.state == Candidate::State::kAllowed || other.state == Candidate::State::kCutOff)
            allowed = std::max(allowed, other.weight);
    }
    const auto least = [&](float best) { return static_cast<float>(sampling_.min_p) * best; };
    if (drawn.weight < least(allowed)) return Cut::kOutside;
    return drawn.weight < least(std::max(allowed, possible)) ? Cut::kUnclear : Cut::kWithin;
}

// Asking
// -------------------------------------------------------------------------------------------------

/// About the next most probable ones. False: the limit is reached.
bool Sampler::ask_more(TokenConstraint& constraint) {
    for (const std::size_t most : kAskedAbout) {
        const std::size_t next = std::min(most, candidates_.size());
        if (next <= known_) continue;
        const auto begin = candidates_.begin();
        std::partial_sort(begin + static_cast<std::ptrdiff_t>(known_),
                          begin + static_cast<std::ptrdiff_t>(next), candidates_.end(),
                          more_probable);
        ask(constraint, known_, next);
        known_ = next;
        return true;
    }
    return false;
}

/// About those of candidates_[from, to) of which nothing is known.
void Sampler::ask(TokenConstraint& constraint, std::size_t from, std::size_t to) {
    const auto these = std::span(candidates_).subspan(from, to - from);
    asked_.clear();
    for (const Candidate& candidate : these)
        if (candidate.state == Candidate::State::kUnknown) asked_.push_back(candidate.id);
    constraint.keep_allowed(asked_);
    auto next = asked_.begin();
    for (Candidate& candidate : these) {
        if (candidate.state != Candidate::State::kUnknown) continue;
        const bool allowed = next != asked_.end() && *next == candidate.id;
        candidate.state = allowed ? Candidate::State::kAllowed : Candidate::State::kRefused;
        if (allowed) ++next;
    }
}

/// The logits, without those of all tokens that are refused.
std::span<const float> Sampler::masked(std::span<const float> logits, TokenConstraint& constraint) {
    asked_.clear();
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (std::isfinite(logits[i])) asked_.push_back(static_cast<TokenId>(i));
    constraint.keep_allowed(asked_);
    masked_.assign(logits.size(), -std::numeric_limits<float>::infinity());
    for (const TokenId token : asked_)
        masked_[static_cast<std::size_t>(token)] = logits[static_cast<std::size_t>(token)];
    return masked_;
}

}  // namespace fullstop::engine
