// Who asks what and when, as a list that is fixed before the first request: the same load can be
// given to every setting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "engine/answer_end.h"
#include "simulator/capacity/simulated_backend.h"

namespace fullstop::simulator {

struct PlannedRequest {
    base::Duration at{};  ///< from the start; not used when users ask in a closed loop
    base::Tokens prompt{1};
    base::Tokens natural{1};                 ///< tokens after which the model would end by itself
    std::optional<base::Tokens> max_tokens;  ///< absent: what the window leaves
    std::optional<base::Duration>
        patience;  ///< the client leaves so long after it asked; absent: never
    engine::Priority priority = engine::Priority::kNormal;
    std::string client;      ///< whose it is, for fairness
    base::Tokens shared{0};  ///< of the prompt, at its beginning: the same for all requests
};

struct ServingLoad {
    std::vector<PlannedRequest> requests;  ///< in order of `at`, unless users ask
    /// Above 0: so many users, each of whom asks the next request of the list when its last answer
    /// has ended.
    std::int64_t users = 0;
};

enum class ArrivalPattern { kUsers, kPoisson, kBurst };

struct LoadShape {
    ArrivalPattern pattern = ArrivalPattern::kUsers;
    std::int64_t users = 8;  ///< kUsers
    double rate = 1;         ///< kPoisson: requests a second
    std::int64_t requests = 64;
    TokenRange prompt{{100}, {100}}, natural{{250}, {250}};
    base::Tokens shared{0};  ///< of each prompt
    std::optional<base::Tokens> max_tokens;
};

/// Lengths depend on `seed` and the number of the request alone, so that loads of other patterns
/// ask the same.
ServingLoad make_load(const LoadShape& shape, std::uint64_t seed);

/// Text of request `number` for SimulatedBackend, with exactly `length` tokens of which the first
/// `shared` are the same for all. No two requests have the same text where the rest is long enough
/// to tell them apart.
std::string prompt_text(std::size_t number, base::Tokens length, base::Tokens shared = {});

}  // namespace fullstop::simulator
