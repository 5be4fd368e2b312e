// One call of the budget script: what is asked as the words of a command, and what its reply means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/redis/resp.h"
#include "gateway/budget/shared_budget.h"

namespace fullstop::adapters::redis {

enum class Operation { kReserve, kSettle, kRenew };

struct ScriptCall {
    Operation operation = Operation::kReserve;
    const gateway::StoreReserve& ask;
    std::string_view prefix, instance;
    std::int64_t used = 0;
    bool add_unknown = true;  ///< kSettle: what the store does not know of is counted too
};

/// By the script's hash, or with its text when `sha` is empty.
std::string call_bytes(const ScriptCall& call, const std::string& sha);

struct Verdict {
    bool granted = false;
    std::size_t window = 0;
    std::int64_t left = 0;
    std::optional<base::Duration> retry_after = {};
};
/// None: this is no reply of the script.
std::optional<Verdict> read_verdict(const Reply& reply);

/// An error of the store in as many words as may be repeated.
std::string error_words(std::string_view text);

}  // namespace fullstop::adapters::redis
