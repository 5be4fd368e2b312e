// One stream of random numbers a request for its lengths, one for all arrivals.
#include "simulator/capacity/serving_load.h"

#include <algorithm>

#include "base/assert.h"

namespace fullstop::simulator {

ServingLoad make_load(const LoadShape& shape, std::uint64_t seed) {
    FULLSTOP_ASSERT(shape.pattern != ArrivalPattern::kUsers || shape.users > 0, "somebody asks");
    FULLSTOP_ASSERT(shape.pattern != ArrivalPattern::kPoisson || shape.rate > 0, "requests come");
    ServingLoad load;
    load.users = shape.pattern == ArrivalPattern::kUsers ? shape.users : 0;
    base::Random arrivals = base::Random(seed).fork(2);
    base::Duration at{};
    for (std::int64_t i = 0; i < shape.requests; ++i) {
        base::Random lengths = base::Random(seed).fork(static_cast<std::uint64_t>(i) + 100);
        PlannedRequest& request = load.requests.emplace_back();
        request.prompt = shape.prompt.draw(lengths);
        request.natural = shape.natural.draw(lengths);
        request.max_tokens = shape.max_tokens;
        request.shared = std::min(shape.shared, request.prompt);
        if (shape.pattern == ArrivalPattern::kPoisson)
            request.at = at += base::from_ms(arrivals.exponential(1000 / shape.rate));
    }
    return load;
}

std::string prompt_text(std::size_t number, base::Tokens length, base::Tokens shared) {
    FULLSTOP_ASSERT(length.count > 0 && shared <= length, "a prompt has at least its end");
    std::string text(static_cast<std::size_t>(length.count), 'p');
    text.back() = '\n';
    for (auto i = static_cast<std::size_t>(shared.count); i + 1 < text.size() && number > 0;
         ++i, number /= 26)
        text[i] = static_cast<char>('a' + number % 26);
    return text;
}

}  // namespace fullstop::simulator
