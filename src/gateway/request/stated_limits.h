// The limits on output tokens that a request's body states, and where each dialect looks for its
// own: read by request_body, exchanged in the text by budget/output_limit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fullstop::gateway {

/// Names of limits on output tokens in the dialects known, and of the objects that may hold them.
inline constexpr std::array<const char*, 7> kLimitMembers = {
    "max_completion_tokens", "max_tokens",     "n_predict", "num_predict",
    "max_output_tokens",     "max_new_tokens", "max_length"};
inline constexpr std::array<const char*, 3> kLimitObjects = {"options", "parameters",
                                                             "sampling_params"};

/// The limits on output tokens that a body states, in whatever dialect.
struct StatedLimits {
    struct Limit {
        std::string_view object,
            name;  ///< the object that holds it, "" for the body itself; constants
        std::size_t from = 0, to = 0;  ///< its value in the text
        std::optional<std::int64_t>
            tokens;  ///< at most kMostTokens; absent: it limits nothing (null, -1, no number)
        bool plain = false;  ///< spelled as a whole number above 0, which every reader reads alike
        bool null = false;   ///< as if it were not there
    };
    struct Object {
        std::string_view name;
        std::size_t from = 0;  ///< its '{' in the text
        bool object = false;   ///< it is one
    };
    std::vector<Limit> limits;
    std::vector<Object> objects;  ///< those that may hold a limit; the first is the body itself
    bool sglang = false;          ///< SGLang's members, on a path that it shares with TGI

    const Limit* find(std::string_view object, std::string_view name) const;
    const Object* find(std::string_view object) const;
    /// The most that a server of this path may make of them; absent: nothing limits it.
    std::optional<std::int64_t> max_tokens(std::string_view path) const;
    /// Every server of this path finds a limit where it looks for one.
    bool limit_everywhere(std::string_view path) const;
};

/// Where a dialect looks for its limit: `object` "" for the body itself; `name` is added when
/// neither stands there.
struct LimitPlace {
    std::string_view object, name, or_name = {};
};
/// Of the servers that may stand behind a path; each looks in one of them.
std::vector<LimitPlace> limit_places(std::string_view path, const StatedLimits& limits);

}  // namespace fullstop::gateway
