// Who asks stands in the head, what is asked for in the body. Lengths are counted in bytes of text:
// pictures and sounds are counted apart.
#include "gateway/request/work.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/sha256.h"
#include "gateway/request/request_head.h"

namespace fullstop::gateway {
namespace {

std::uint64_t digest_number(std::string_view text) {
    const std::string hex = base::sha256_hex(text).substr(0, 16);
    std::uint64_t out = 0;
    std::from_chars(hex.data(), hex.data() + hex.size(), out, 16);
    return std::max<std::uint64_t>(out, 1);
}

/// What says "this belongs together": a session named by the client, else the beginning of
/// the conversation.
std::uint64_t affinity_of(const net::ServiceRequest& request, const RequestBody& body) {
    for (const auto* name : {"x-session-id", "x-conversation-id"})
        if (const auto value = header(request, name); !value.empty())
            return digest_number(std::string("session ").append(value));
    if (!body.session.empty()) return digest_number("session " + body.session);
    return body.prefix.empty() ? 0 : digest_number(body.prefix);
}

std::string client_of(const net::ServiceRequest& request) {
    for (const auto* name : kCredentials)
        if (const auto value = header(request, name); !value.empty())
            return base::sha256_hex(value).substr(0, 16);
    return {};
}

bool writes_sse(std::string_view path, bool stream) {
    if (path.ends_with("/generate_stream") || path.ends_with("/generate/stream")) return true;
    return stream && !path.ends_with("/api/chat") && !path.ends_with("/api/generate");
}

}  // namespace

std::expected<Work, std::string> read_work(const net::ServiceRequest& request, bool strict) {
    Work work;
    work.path = request.target.substr(0, request.target.find('?'));
    work.answer = request.method == "POST" && is_answer_path(work.path);
    work.client = client_of(request);
    if (!work.answer) return work;
    auto body = read_body(request.body);
    if (!body && (strict || !body.error().no_json))
        return std::unexpected(std::move(body.error().message));
    if (!body) return work;  // the upstream knows better what is wrong with it
    const bool lines = work.path.ends_with("/api/chat") || work.path.ends_with("/api/generate");
    work.stream = body->stream.value_or(lines);
    work.sse = writes_sse(work.path, work.stream);
    work.stream = work.stream || work.sse;
    work.affinity = affinity_of(request, *body);
    work.model = std::move(body->model);
    work.prompt_bytes = body->prompt_bytes, work.prompt_ids = body->prompt_ids;
    work.messages = body->messages, work.images = body->images, work.answers = body->answers;
    work.max_tokens = body->limits.max_tokens(work.path);
    work.limited_everywhere = body->limits.limit_everywhere(work.path);
    work.plain_chat = body->plain_chat && work.sse && work.path.ends_with("/chat/completions");
    work.limits = std::move(body->limits);
    work.priority = body->priority.value_or(Priority::kNormal);
    work.deadline = body->deadline;
    return work;
}

std::int64_t prompt_tokens(const Work& work, double per_byte) {
    const auto text =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(work.prompt_bytes) * per_byte));
    return text + work.prompt_ids + kTemplateTokens + work.messages * kMessageTokens +
           work.images * kImageTokens;
}

}  // namespace fullstop::gateway
