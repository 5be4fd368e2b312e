// One walk over the JSON body. Lengths are counted in bytes of text: pictures and sounds are counted apart.
#include "gateway/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/sha256.h"
#include "gateway/request_head.h"
#include "wire/json.h"

namespace fullstop::gateway {
namespace {

/// Members whose text becomes part of the prompt, in the dialects known.
constexpr std::array<std::string_view, 10> kPromptMembers = {"messages",     "prompt", "system", "tools",       "input_prefix",
                                                             "input_suffix", "inputs", "input",  "input_extra", "functions"};
/// More answers at once than this are asked for by nobody.
constexpr std::int64_t kMostAnswers = 128;
/// A month: no answer takes longer, and no arithmetic overflows.
constexpr double kLongestWishMs = 30.0 * 24 * 3600 * 1000;
/// How much of the first message counts for "the same prefix" when there is no system prompt.
constexpr std::size_t kPrefixBytes = 512;

std::uint64_t digest_number(std::string_view text) {
    const std::string hex = base::sha256_hex(text).substr(0, 16);
    std::uint64_t out = 0;
    std::from_chars(hex.data(), hex.data() + hex.size(), out, 16);
    return std::max<std::uint64_t>(out, 1);
}

void count_text(wire::JsonValue value, Work& work) {
    if (value.is_string()) {
        if (value.string().starts_with("data:"))
            ++work.images;
        else
            work.prompt_bytes += static_cast<std::int64_t>(value.string().size());
    }
    for (const wire::JsonValue part : value) count_text(part, work);
}

std::string_view text_of(wire::JsonValue content) {
    if (content.is_string()) return content.string();
    return content.first()["text"].string();
}

/// The words that say "this belongs together": a session named by the client, else the beginning of the conversation.
std::uint64_t affinity_of(const net::ServiceRequest& request, wire::JsonValue body) {
    for (const auto* name : {"x-session-id", "x-conversation-id"})
        if (const auto value = header(request, name); !value.empty()) return digest_number(std::string("session ").append(value));
    for (const auto* name : {"prompt_cache_key", "user", "session_id"})
        if (const auto value = body[name].string(); !value.empty()) return digest_number(std::string("session ").append(value));
    std::string_view prefix = body["system"].string();
    if (const wire::JsonValue first = body["messages"].first(); first.present()) prefix = text_of(first["content"]);
    if (prefix.empty()) prefix = body["prompt"].string();
    return prefix.empty() ? 0 : digest_number(prefix.substr(0, kPrefixBytes));
}

std::string client_of(const net::ServiceRequest& request) {
    for (const auto* name : {"authorization", "x-api-key", "api-key"})
        if (const auto value = header(request, name); !value.empty()) return base::sha256_hex(value).substr(0, 16);
    return {};
}

bool writes_sse(std::string_view path, bool stream) {
    if (path.ends_with("/generate_stream") || path.ends_with("/generate/stream")) return true;
    return stream && !path.ends_with("/api/chat") && !path.ends_with("/api/generate");
}

/// The members of `fullstop`; what is wrong with them, if anything.
std::optional<std::string> read_wishes(wire::JsonValue wishes, Work& work) {
    if (const wire::JsonValue deadline = wishes["deadline_ms"]) {
        const auto ms = deadline.number();
        if (!ms || !(*ms > 0) || *ms > kLongestWishMs) return "fullstop.deadline_ms is a number of milliseconds above 0";
        work.deadline = base::from_ms(*ms);
    }
    const wire::JsonValue priority = wishes["priority"];
    if (!priority) return std::nullopt;
    for (const Priority known : {Priority::kInteractive, Priority::kNormal, Priority::kBatch}) {
        if (priority.string() != to_string(known)) continue;
        work.priority = known;
        return std::nullopt;
    }
    return fmt::format("fullstop.priority is interactive, normal or batch, not '{}'", priority.verbatim().substr(0, 40));
}

}  // namespace

std::expected<Work, std::string> read_work(const net::ServiceRequest& request) {
    Work work;
    work.answer = request.method == "POST" && is_answer_path(request.target);
    work.client = client_of(request);
    work.path = request.target.substr(0, request.target.find('?'));
    if (!work.answer) return work;
    wire::JsonReader reader;
    const wire::JsonValue body = reader.read(request.body);
    if (!body.is_object()) return work;  // the upstream knows better what is wrong with it
    for (const auto name : kPromptMembers) count_text(body[name], work);
    if (const wire::JsonValue messages = body["messages"]; messages.is_array()) work.messages = std::distance(messages.begin(), messages.end());
    const bool lines = work.path.ends_with("/api/chat") || work.path.ends_with("/api/generate");
    work.stream = lines ? !(body["stream"].is_bool() && !body["stream"].is_true()) : body["stream"].is_true();
    work.sse = writes_sse(work.path, work.stream);
    work.stream = work.stream || work.sse;
    work.model = body["model"].string();
    work.max_tokens = requested_max_tokens(request.body);
    work.answers = std::clamp<std::int64_t>(body["n"].integer().value_or(1), 1, kMostAnswers);
    work.affinity = affinity_of(request, body);
    if (auto problem = read_wishes(body["fullstop"], work)) return std::unexpected(std::move(*problem));
    return work;
}

std::int64_t prompt_tokens(const Work& work, double per_byte) {
    const auto text = static_cast<std::int64_t>(std::ceil(static_cast<double>(work.prompt_bytes) * per_byte));
    return text + kTemplateTokens + work.messages * kMessageTokens + work.images * kImageTokens;
}

}  // namespace fullstop::gateway
