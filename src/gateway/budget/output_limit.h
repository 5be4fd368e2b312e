// A maximum of this gateway on the length of one answer: which one holds now, and the request
// changed to say so. Only what the configuration names is ever applied, and the client is told in
// headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/policy.h"
#include "gateway/request/request_body.h"

namespace fullstop::gateway {

struct OutputLimit {
    std::int64_t max_tokens = 0;
    bool by_load =
        false;  ///< it moves with load: an answer that ends at it is cut by the gateway's budget
    std::string name;  ///< the setting, for the header
};

/// The maximum that holds with so many answers running and waiting (the new one included); absent
/// when none is below what the request asks for itself.
std::optional<OutputLimit> output_limit(const OutputLimits& limits, std::int64_t users,
                                        std::optional<std::int64_t> asked);

/// The object in which this path looks for its limit, where the body has something else under its
/// name: no limit can be set.
std::optional<std::string_view> no_place_for_limit(std::string_view path,
                                                   const StatedLimits& limits);

/// The body with every limit it states lowered to at most `max_tokens`, and one added wherever a
/// server of `path` looks for it and finds none. Everything else keeps its bytes. `limits` are
/// those of this body.
std::string with_max_tokens(std::string_view body, std::string_view path,
                            const StatedLimits& limits, std::int64_t max_tokens);

}  // namespace fullstop::gateway
