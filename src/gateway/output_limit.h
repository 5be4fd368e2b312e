// A maximum of this gateway on the length of one answer: which one holds now, and the request changed to say so. Only what
// the configuration names is ever applied, and the client is told in headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/policy.h"

namespace fullstop::gateway {

struct OutputLimit {
    std::int64_t max_tokens = 0;
    bool by_load = false;  ///< it moves with load: an answer that ends at it is cut by the gateway's budget
    std::string name;      ///< the setting, for the header
};

/// The maximum that holds with so many answers running and waiting (the new one included); absent when none is below
/// what the request asks for itself.
std::optional<OutputLimit> output_limit(const OutputLimits& limits, std::int64_t users, std::optional<std::int64_t> asked);

/// The body with every limit it names lowered to at most `max_tokens`, or with one added in the dialect of `path`.
/// Everything else keeps its bytes. Absent when the body is no JSON object.
std::optional<std::string> with_max_tokens(std::string_view body, std::string_view path, std::int64_t max_tokens);

}  // namespace fullstop::gateway
