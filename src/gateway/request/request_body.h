// What a request's body says, as far as a gateway has to know: one strict and bounded pass, in
// which nothing is built of what it holds. Limits on output are told with the place where each
// stands (stated_limits.h), so that they can be exchanged in the text itself.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "gateway/policy.h"
#include "gateway/request/stated_limits.h"

namespace fullstop::gateway {

struct RequestBody {
    std::string model;
    std::optional<bool> stream;
    std::string session;  ///< what the client named it by, cut to what counts
    std::string prefix;   ///< the beginning of the conversation, cut so too
    std::int64_t prompt_bytes = 0, prompt_ids = 0, messages = 0, images = 0, answers = 1;
    StatedLimits limits;
    std::optional<base::Duration> deadline;
    std::optional<Priority> priority;
    bool plain_chat = false;  ///< a chat that asks for one answer of text, in no other form
};

struct UnreadBody {
    bool no_json =
        false;  ///< no JSON object to a strict reader; else it is one that is refused in any case
    std::string message;  ///< a sentence for the client
};
std::expected<RequestBody, UnreadBody> read_body(std::string_view text);

}  // namespace fullstop::gateway
