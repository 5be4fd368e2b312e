// What becomes of a request whose first token is not expected within the target: nothing, a lower
// class, or a refusal at once, so that its client can go elsewhere. Only load is held against a
// request: what would miss the target on an idle server too is served.
#pragma once

#include <optional>
#include <string_view>

namespace fullstop::engine {

/// Code of an early refusal.
inline constexpr std::string_view kMissesTarget = "ttft_target";

enum class SloPolicy { kIgnore, kDemote, kRejectEarly };

std::string_view to_string(SloPolicy);
/// ignore, demote, reject_early.
std::optional<SloPolicy> parse_slo_policy(std::string_view word);

}  // namespace fullstop::engine
