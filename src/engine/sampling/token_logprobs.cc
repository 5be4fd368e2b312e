// One pass for the highest, one for the sum and the best few: a vocabulary is too large to be
// sorted for every token.
#include "engine/sampling/token_logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace fullstop::engine {
namespace {

struct Best {
    TokenId id;
    float logit;
};

/// The `count` highest finite logits, highest first; of equals the lower id.
std::vector<Best> best_of(std::span<const float> logits, std::size_t count) {
    std::vector<Best> best;
    for (std::size_t i = 0; count > 0 && i < logits.size(); ++i) {
        if (!std::isfinite(logits[i]) || (best.size() == count && logits[i] <= best.back().logit))
            continue;
        if (best.size() == count) best.pop_back();
        const auto place =
            std::ranges::find_if(best, [&](const Best& other) { return other.logit < logits[i]; });
        best.insert(place, {static_cast<TokenId>(i), logits[i]});
    }
    return best;
}

/// log(sum(exp(logits))), without overflow.
double log_sum(std::span<const float> logits) {
    double highest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const float logit : logits)
        if (std::isfinite(logit)) highest = std::max(highest, static_cast<double>(logit));
    for (const float logit : logits)
        if (std::isfinite(logit)) sum += std::exp(static_cast<double>(logit) - highest);
    return highest + std::log(sum);
}

}  // namespace

void TokenLogprobs::add(const Backend& backend, std::span<const float> logits, TokenId chosen) {
    const double total = log_sum(logits);
    ShownToken token{{backend.piece(chosen),
                      static_cast<double>(logits[static_cast<std::size_t>(chosen)]) - total},
                     {}};
    for (const Best& one : best_of(logits, top_))
        token.top.push_back({backend.piece(one.id), static_cast<double>(one.logit) - total});
    const std::size_t begin = std::exchange(length_, length_ + token.chosen.bytes.size());
    waiting_.push_back({std::move(token), begin, length_});
}

std::vector<ShownToken> TokenLogprobs::take(std::size_t shown) {
    std::vector<ShownToken> out;
    while (!waiting_.empty() && waiting_.front().end <= shown) {
        out.push_back(std::move(waiting_.front().token));
        waiting_.pop_front();
    }
    return out;
}

std::vector<ShownToken> TokenLogprobs::finish(std::size_t shown) {
    std::vector<ShownToken> out = take(shown);
    if (!waiting_.empty() && waiting_.front().begin < shown)
        out.push_back(std::move(waiting_.front().token));
    waiting_.clear();
    return out;
}

}  // namespace fullstop::engine
