// Plain string building over the host's parsed request; nothing here looks into the body.
#include "gateway/request/request_head.h"

#include <algorithm>
#include <array>
#include <span>

namespace fullstop::gateway {
namespace {

constexpr std::array<std::string_view, 8> kHopByHop = {
    "connection", "keep-alive", "proxy-connection", "te",
    "trailer",    "upgrade",    "expect",           "transfer-encoding"};
/// Written anew for the upstream.
constexpr std::array<std::string_view, 5> kOurs = {"host", "content-length", "x-request-id",
                                                   "accept-encoding", "via"};
constexpr std::array<std::string_view, 11> kAnswerPaths = {
    "/chat/completions", "/completions", "/completion",      "/api/chat",
    "/api/generate",     "/generate",    "/generate_stream", "/generate/stream",
    "/infill",           "/messages",    "/responses"};

/// What cannot carry an answer: their responses are lists, numbers or a word, whatever is asked.
constexpr std::array<std::string_view, 26> kPlainPaths = {"/embeddings",
                                                          "/embedding",
                                                          "/embed",
                                                          "/tokenize",
                                                          "/detokenize",
                                                          "/apply-template",
                                                          "/rerank",
                                                          "/reranking",
                                                          "/score",
                                                          "/classify",
                                                          "/pooling",
                                                          "/moderations",
                                                          "/messages/count_tokens",
                                                          "/responses/input_tokens",
                                                          "/api/show",
                                                          "/api/pull",
                                                          "/api/push",
                                                          "/api/create",
                                                          "/api/copy",
                                                          "/api/extra/tokencount",
                                                          "/api/extra/abort",
                                                          "/api/extra/generate/check",
                                                          "/load_lora_adapter",
                                                          "/unload_lora_adapter",
                                                          "/lora-adapters",
                                                          "/props"};

bool ends_with_one_of(std::string_view path, std::span<const std::string_view> ends) {
    return std::ranges::any_of(ends, [&](std::string_view end) { return path.ends_with(end); });
}

}  // namespace

bool is_hop_by_hop(std::string_view name, std::string_view connection) {
    if (std::ranges::find(kHopByHop, name) != kHopByHop.end()) return true;
    const std::string named = lower(connection);
    for (std::size_t from = 0; from < named.size();) {
        const std::size_t end = std::min(named.find(',', from), named.size());
        std::string_view word = std::string_view(named).substr(from, end - from);
        while (word.starts_with(' ') || word.starts_with('\t')) word.remove_prefix(1);
        while (word.ends_with(' ') || word.ends_with('\t')) word.remove_suffix(1);
        if (word == name) return true;
        from = end + 1;
    }
    return false;
}

bool is_answer_path(std::string_view path) { return ends_with_one_of(path, kAnswerPaths); }

bool carries_no_answer(std::string_view method, std::string_view path) {
    constexpr std::array<std::string_view, 4> kPlainMethods = {"GET", "HEAD", "OPTIONS", "DELETE"};
    if (std::ranges::find(kPlainMethods, method) != kPlainMethods.end()) return true;
    return method == "POST" &&
           (ends_with_one_of(path, kPlainPaths) || path.contains("/api/blobs/"));
}

std::string upstream_request(const net::ServiceRequest& request, const wire::ServerUrl& upstream,
                             std::string_view request_id) {
    return upstream_head(request, upstream, request_id, request.body.size()).append(request.body);
}

std::string upstream_head(const net::ServiceRequest& request, const wire::ServerUrl& upstream,
                          std::string_view request_id, std::size_t body_bytes) {
    const bool six = upstream.host.find(':') != std::string::npos;
    std::string out = request.method;
    out.append(" ").append(upstream.base_path).append(request.target).append(" HTTP/1.1\r\nHost: ");
    out.append(six ? "[" : "").append(upstream.host).append(six ? "]" : "");
    if (upstream.port != (upstream.tls ? 443 : 80))
        out.append(":").append(std::to_string(upstream.port));
    out.append("\r\n");
    const std::string_view connection = header(request, "connection");
    for (const auto& [name, value] : request.headers) {
        if (is_hop_by_hop(name, connection) || std::ranges::find(kOurs, name) != kOurs.end())
            continue;
        out.append(name).append(": ").append(value).append("\r\n");
    }
    const std::string_view via = header(request, "via");
    out.append("accept-encoding: identity\r\nvia: ")
        .append(via)
        .append(via.empty() ? "" : ", ")
        .append("1.1 fullstop\r\n");
    out.append("x-request-id: ").append(request_id).append("\r\n");
    if (body_bytes > 0 || !header(request, "content-length").empty() ||
        !header(request, "transfer-encoding").empty())
        out.append("content-length: ").append(std::to_string(body_bytes)).append("\r\n");
    return out.append("\r\n");
}

}  // namespace fullstop::gateway
