// What a request asks of the gateway, read once when it comes: how long its prompt is, how many
// tokens it wants, who asks and how urgently. Nothing here changes the request.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "base/time.h"
#include "gateway/policy.h"
#include "gateway/request/request_body.h"
#include "net/service.h"

namespace fullstop::gateway {

struct Work {
    bool answer = false;  ///< a model is asked to write
    bool sse = false;     ///< the client reads server-sent events, so that a comment does no harm
    bool stream = false;  ///< piece by piece in any form
    Priority priority = Priority::kNormal;
    std::string client;  ///< the name of the API key, or the digest of one that is not ours to
                         ///< know; "" when none was sent
    std::uint64_t affinity = 0;  ///< same session or prefix; 0: none
    std::string model, path;
    std::int64_t prompt_bytes = 0, prompt_ids = 0, messages = 0, images = 0, answers = 1;
    std::optional<std::int64_t>
        max_tokens;                   ///< at most kMostTokens, which stands for all that is beyond
    StatedLimits limits;              ///< where that stands in the body
    bool limited_everywhere = false;  ///< wherever a server of this path looks for it
    bool plain_chat = false;          ///< a streamed chat of one answer, of text alone
    std::optional<base::Duration>
        deadline;  ///< `fullstop.deadline_ms`: the client's own limit on the whole answer
};

/// `target` of the request is in its normal form. `strict`: a body that is no JSON object to us may
/// be one to a server that reads less strictly, and is refused; else it is that server's to refuse.
/// The error is a sentence for the client (400).
std::expected<Work, std::string> read_work(const net::ServiceRequest& request, bool strict = false);

/// Tokens of the prompt. `per_byte` is the upstream's, learned from usage.
std::int64_t prompt_tokens(const Work& work, double per_byte);

}  // namespace fullstop::gateway
