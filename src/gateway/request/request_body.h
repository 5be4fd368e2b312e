// What a request's body says, as far as a gateway has to know: one strict and bounded pass, in
// which nothing is built of what it holds. Limits on output are told with the place where each
// stands, so that they can be exchanged in the text itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "gateway/policy.h"

namespace fullstop::gateway {

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
    bool sglang = false;          ///< SGLang's words, on a path that it shares with TGI

    const Limit* find(std::string_view object, std::string_view name) const;
    const Object* find(std::string_view object) const;
};

/// Where a dialect looks for its limit: `object` "" for the body itself; `name` is added when
/// neither stands there.
struct LimitPlace {
    std::string_view object, name, or_name = {};
};
/// Of the servers that may stand behind a path; each looks in one of them.
std::vector<LimitPlace> limit_places(std::string_view path, const StatedLimits& limits);

struct RequestBody {
    std::string model;
    std::optional<bool> stream;
    std::string session;  ///< what the client named it by, cut to what counts
    std::string prefix;   ///< the beginning of the conversation, cut so too
    std::int64_t prompt_bytes = 0, prompt_ids = 0, messages = 0, images = 0, answers = 1;
    StatedLimits limits;
    std::optional<base::Duration> deadline;
    std::optional<Priority> priority;

    /// The most that a server of this path may make of it; absent: nothing limits it.
    std::optional<std::int64_t> max_tokens(std::string_view path) const;
    /// Every server of this path reads a limit in it.
    bool surely_limited(std::string_view path) const;
};

struct UnreadBody {
    bool no_json =
        false;  ///< no JSON object to a strict reader; else it is one that is refused in any case
    std::string words;  ///< a sentence for the client
};
std::expected<RequestBody, UnreadBody> read_body(std::string_view text);

}  // namespace fullstop::gateway
