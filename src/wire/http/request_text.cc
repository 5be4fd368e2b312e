// Each dialect's own names for the same wishes. Only members that every server of the dialect takes
// are sent, so that one request suits all of them; nothing is sent that the caller did not ask for.
#include "wire/http/request_text.h"

#include <boost/json.hpp>

#include <algorithm>
#include <utility>

namespace fullstop::wire {
namespace {

namespace json = boost::json;
using answer::Api;
using answer::Request;

struct Route {
    std::string_view stream, body;
};

Route route(Api api) {
    switch (api) {
        case Api::kOpenAiChat: return {"/v1/chat/completions", "/v1/chat/completions"};
        case Api::kOpenAiCompletions: return {"/v1/completions", "/v1/completions"};
        case Api::kOllama: return {"/api/chat", "/api/chat"};
        case Api::kLlamaServer: return {"/completion", "/completion"};
        case Api::kKoboldCpp: return {"/api/extra/generate/stream", "/api/v1/generate"};
        case Api::kTgi: return {"/generate_stream", "/generate"};
    }
    std::unreachable();
}

json::array messages_of(const Request& request) {
    json::array out;
    for (const auto& message : request.messages)
        out.push_back({{"role", message.role}, {"content", message.content}});
    return out;
}

/// For dialects without roles: the contents, in order. No chat template is guessed.
std::string prompt_of(const Request& request) {
    std::string out;
    for (const auto& message : request.messages) {
        if (!out.empty()) out += "\n\n";
        out += message.content;
    }
    return out;
}

json::array strings(const std::vector<std::string>& words) {
    json::array out;
    for (const auto& word : words) out.push_back(json::string(word));
    return out;
}

struct Names {
    const char *limit, *temperature, *top_p, *seed, *stop;
};

void add_sampling(json::object& out, const Request& request, const Names& names) {
    if (request.max_tokens) out[names.limit] = request.max_tokens->count;
    if (request.temperature) out[names.temperature] = *request.temperature;
    if (request.top_p) out[names.top_p] = *request.top_p;
    out[names.seed] = request.seed;
    if (!request.stop.empty()) out[names.stop] = strings(request.stop);
}

void add_openai(json::object& out, const Request& request) {
    if (!request.model.empty()) out["model"] = request.model;
    if (request.api == Api::kOpenAiChat)
        out["messages"] = messages_of(request);
    else
        out["prompt"] = prompt_of(request);
    // max_completion_tokens is newer, but Ollama ignores it and older servers reject it.
    add_sampling(out, request, {"max_tokens", "temperature", "top_p", "seed", "stop"});
    out["stream"] = request.stream;
    if (request.stream) out["stream_options"] = {{"include_usage", true}};
}

void add_ollama(json::object& out, const Request& request) {
    out["model"] = request.model;
    out["messages"] = messages_of(request);
    out["stream"] = request.stream;
    json::object options;
    add_sampling(options, request, {"num_predict", "temperature", "top_p", "seed", "stop"});
    out["options"] = std::move(options);
}

void add_koboldcpp(json::object& out, const Request& request) {
    out["prompt"] = prompt_of(request);
    add_sampling(out, request,
                 {"max_length", "temperature", "top_p", "sampler_seed", "stop_sequence"});
    // Without a key of its own an abort of one user's request may hit another's.
    if (!request.id.empty()) out["genkey"] = request.id;
}

void add_tgi(json::object& out, const Request& request) {
    out["inputs"] = prompt_of(request);
    json::object parameters;
    add_sampling(parameters, request, {"max_new_tokens", "temperature", "top_p", "seed", "stop"});
    // TGI refuses a temperature of 0 and a top_p of 1: it spells greedy as not sampling, and "all"
    // as absent.
    const bool greedy = request.temperature && *request.temperature <= 0;
    if (greedy) parameters.erase("temperature");
    if (request.temperature) parameters["do_sample"] = !greedy;
    if (greedy || (request.top_p && *request.top_p >= 1)) parameters.erase("top_p");
    parameters["details"] = true;
    out["parameters"] = std::move(parameters);
}

bool same_name(std::string_view a, std::string_view b) {
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    return std::ranges::equal(a, b, {}, lower, lower);
}

/// A header may not smuggle in a second one.
std::string on_one_line(std::string text) {
    std::erase_if(text, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
    return text;
}

std::string head_text(std::string_view method, const ServerUrl& url, std::string_view path,
                      Headers headers, const Headers& extra) {
    const bool literal = url.host.find(':') != std::string::npos;
    std::string host = literal ? "[" + url.host + "]" : url.host;
    if (url.port != (url.tls ? 443 : 80)) host += ":" + std::to_string(url.port);
    headers.insert(headers.begin(), {"Host", std::move(host)});
    headers.emplace_back("Connection", "close");
    headers.emplace_back("Accept-Encoding", "identity");  // a compressed body would hide its bytes
    headers.emplace_back("User-Agent", "fullstop");
    std::erase_if(headers, [&](const auto& ours) {
        return std::ranges::any_of(
            extra, [&](const auto& theirs) { return same_name(ours.first, theirs.first); });
    });
    headers.insert(headers.end(), extra.begin(), extra.end());
    std::string out =
        std::string(method) + " " + url.base_path + std::string(path) + url.query + " HTTP/1.1\r\n";
    for (const auto& [name, value] : headers)
        out += on_one_line(name) + ": " + on_one_line(value) + "\r\n";
    return out + "\r\n";
}

}  // namespace

std::string request_body(const Request& request) {
    json::object out;
    switch (request.api) {
        case Api::kOpenAiChat:
        case Api::kOpenAiCompletions: add_openai(out, request); break;
        case Api::kOllama: add_ollama(out, request); break;
        case Api::kLlamaServer:
            out["prompt"] = prompt_of(request);
            add_sampling(out, request, {"n_predict", "temperature", "top_p", "seed", "stop"});
            out["stream"] = request.stream;
            break;
        case Api::kKoboldCpp: add_koboldcpp(out, request); break;
        case Api::kTgi: add_tgi(out, request); break;
    }
    return json::serialize(out);
}

std::string request_text(const Request& request, const ServerUrl& url, const Headers& extra) {
    const Route at = route(request.api);
    const std::string body = request_body(request);
    Headers headers = {{"Content-Type", "application/json"},
                       {"Content-Length", std::to_string(body.size())}};
    if (request.stream)
        headers.emplace_back(
            "Accept", request.api == Api::kOllama ? "application/x-ndjson" : "text/event-stream");
    if (!request.id.empty()) headers.emplace_back("X-Request-Id", request.id);
    return head_text("POST", url, request.stream ? at.stream : at.body, std::move(headers), extra) +
           body;
}

std::string get_text(const ServerUrl& url, std::string_view path, const Headers& extra) {
    return head_text("GET", url, path, {}, extra);
}

}  // namespace fullstop::wire
