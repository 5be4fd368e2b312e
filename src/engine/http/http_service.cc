// Routing, then one small state machine per answer: accepted, head sent, role sent, ended.
#include "engine/http/http_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <utility>

#include "engine/http/service_pages.h"
#include "engine/limits.h"
#include "engine/openai/openai_logprobs.h"
#include "serving/limits.h"
#include "serving/reply.h"
#include "serving/request_identity.h"
#include "wire/http/request_path.h"
#include "wire/http/response_text.h"

namespace fullstop::engine {

using base::Instant;
using net::ConnectionId;
using net::ServiceActions;
using serving::kJson, serving::kPrometheus, serving::respond, serving::retry_after;

namespace {

void send(ConnectionId id, std::string bytes, ServiceActions& out) {
    out.emplace_back(net::ServiceSend{id, std::move(bytes)});
}

/// SSE clients pass over it; what stands between them and us sees that the stream lives.
constexpr std::string_view kComment = ": the answer goes on\n\n";

std::string event_chunk(std::string_view data) { return wire::chunk(wire::sse_event(data)); }

}  // namespace

HttpService::HttpService(ModelFacts facts, ServiceOptions options,
                         std::function<void(Command)> send)
    : facts_(std::move(facts)),
      options_(std::move(options)),
      send_(std::move(send)),
      random_(options_.entropy) {
    occupancy_.kv_total = facts_.pool;
}

HttpService::Asker HttpService::asker_of(const net::ServiceRequest& request) {
    std::string id(serving::header(request, "x-request-id"));
    if (!serving::valid_request_id(id)) id = fmt::format("fs-{:016x}", random_.next());
    return serving::asker_of(request, std::move(id));
}

bool HttpService::head(Instant, const net::ServiceRequest& request, ServiceActions& out) {
    const auto refused = serving::refusal(request, options_.access);
    if (refused)
        respond(asker_of(request), refused->status, kJson,
                error_body(refused->message, "invalid_request_error", refused->code), out,
                refused->headers);
    return !refused;
}

/// What reading one request throws ends that request.
void HttpService::request(Instant now, net::ServiceRequest request, ServiceActions& out) {
    const std::size_t told = out.size();
    try {
        take(now, request, out);
    } catch (const std::exception& thrown) {
        if (out.size() > told) return;
        Asker asker = asker_of(request);
        asker.keep_alive = false;
        respond(asker, 500, kJson,
                error_body(fmt::format("a fault of this server: {}", thrown.what()), "server_error",
                           "fault"),
                out);
    }
}

void HttpService::take(Instant now, const net::ServiceRequest& request, ServiceActions& out) {
    if (!head(now, request, out)) return;
    Asker asker = asker_of(request);
    asker.client = serving::client_name(request, options_.access);
    const auto refuse = [&](int status, std::string_view message, std::string_view code,
                            const wire::Headers& more = {}) {
        respond(asker, status, kJson, error_body(message, "invalid_request_error", code), out,
                more);
    };
    if (const auto sent = serving::header(request, "x-request-id");
        !sent.empty() && !serving::valid_request_id(sent))
        return refuse(400,
                      fmt::format("X-Request-Id has at most {} visible ASCII characters",
                                  serving::kMaxRequestIdBytes),
                      "bad_request_id");
    const auto normal = wire::normal_path(request.target);
    if (!normal) return refuse(400, normal.error(), "bad_path");
    const std::string& path = normal->path;
    if (const auto page = page_at(path)) {
        if (request.method != "GET" && !asker.head_only)
            return serving::refuse_method(asker, path, "GET, HEAD", out);
        if (path == "/health") return serving::respond_health(asker, drained_by_.has_value(), out);
        return respond(asker, 200, page->type, page->body, out);
    }
    const bool shows = path == "/apply-template";
    if (path != "/v1/chat/completions" && path != "/v1/completions" && !shows)
        return refuse(404, fmt::format("there is no {} here", path), "not_found");
    if (request.method != "POST") return serving::refuse_method(asker, path, "POST", out);
    if (shows) return show_prompt(request.body, std::move(asker), out);
    completion(now, path == "/v1/completions" ? Route::kText : Route::kChat, request.body,
               std::move(asker), out);
}

std::optional<HttpService::Page> HttpService::page_at(std::string_view path) const {
    if (path == "/health") return Page{kJson, ""};
    if (path == "/v1/models") return Page{kJson, models_body(facts_, options_.started_wall)};
    if (path == "/metrics")
        return Page{kPrometheus, metrics_.text(occupancy_, facts_.max_sequences)};
    if (path == "/fullstop/status")
        return Page{kJson, status_body(facts_, {.version = options_.version,
                                                .max_queue = options_.max_queue,
                                                .admission = options_.admission,
                                                .slo_policy = options_.slo_policy,
                                                .ttft_target = options_.ttft_target,
                                                .draining = drained_by_.has_value(),
                                                .occupancy = occupancy_,
                                                .ends = metrics_.ends()})};
    return std::nullopt;
}

std::optional<CompletionRequest> HttpService::understood(Route route, std::string_view body,
                                                         const Asker& asker,
                                                         ServiceActions& out) const {
    const auto refuse = [&](int status, std::string_view message, std::string_view type,
                            std::string_view code, std::string_view parameter = {},
                            const wire::Headers& more = {}) {
        respond(asker, status, kJson, error_body(message, type, code, parameter), out, more);
        return std::nullopt;
    };
    if (drained_by_.has_value())
        return refuse(503, "the server is shutting down and takes no new requests",
                      "overloaded_error", "draining", {}, retry_after(options_.drain));
    auto parsed = parse_completion(route, body);
    if (!parsed)
        return refuse(400, parsed.error().message, "invalid_request_error", "invalid_parameter",
                      parsed.error().parameter);
    if (!parsed->model.empty() && parsed->model != facts_.name)
        return refuse(
            404,
            fmt::format("the model '{}' is not served here; '{}' is", parsed->model, facts_.name),
            "invalid_request_error", "model_not_found", "model");
    for (const auto& [token, bias] : parsed->submission.sampling.logit_bias)
        if (token >= facts_.vocabulary)
            return refuse(
                400,
                fmt::format("logit_bias[{}]: the model has {} tokens", token, facts_.vocabulary),
                "invalid_request_error", "invalid_parameter", "logit_bias");
    return std::move(*parsed);
}

/// The prompt is made where the model is, between two steps.
void HttpService::show_prompt(std::string_view body, Asker asker, ServiceActions& out) {
    auto parsed = understood(Route::kChat, body, asker, out);
    if (!parsed) return;
    const ConnectionId id = asker.id;
    shown_to_.emplace(id, std::move(asker));
    send_(ShowPrompt{
        .id = id,
        .messages = std::get<std::vector<answer::Message>>(std::move(parsed->submission.prompt))});
}

void HttpService::on(const PromptShown& event, ServiceActions& out) {
    const auto found = shown_to_.find(event.id);
    if (found == shown_to_.end()) return;
    if (event.prompt)
        respond(found->second, 200, kJson,
                boost::json::serialize(boost::json::object{{"prompt", *event.prompt}}), out);
    else
        respond(found->second, 400, kJson,
                error_body(event.prompt.error().message + ": " + event.prompt.error().hint,
                           "invalid_request_error", "chat_template"),
                out);
    shown_to_.erase(found);
}

void HttpService::completion(Instant now, Route route, std::string_view body, Asker asker,
                             ServiceActions& out) {
    auto parsed = understood(route, body, asker, out);
    if (!parsed) return;
    Submission submission = std::move(parsed->submission);
    submission.id = asker.id;
    submission.arrived = now;
    submission.client = asker.client;
    submission.sampling.seed = parsed->seed.value_or(random_.next());
    Live live{.names = {.route = route,
                        .request_id = asker.request_id,
                        .model = facts_.name,
                        .created = unix_seconds(now),
                        .logprobs = parsed->wants_logprobs},
              .asker = std::move(asker),
              .stream = parsed->stream,
              .include_usage = parsed->include_usage,
              .on_deadline = submission.on_deadline,
              .text = {}};
    live_.emplace(submission.id, std::move(live));
    send_(std::move(submission));
}

void HttpService::client_left(Instant, ConnectionId id, ServiceActions&) {
    shown_to_.erase(id);
    if (live_.erase(id) == 1)
        send_(Cancel{.id = id,
                     .cause = answer::Cause::kClientCancelled,
                     .detail = "the client closed its connection"});
}

void HttpService::drain(Instant now, ServiceActions& out) {
    drained_by_ = now + options_.drain;
    wake_by(*drained_by_, out);
}

/// The host knows one time to wake us; the earliest counts.
void HttpService::wake_by(Instant at, ServiceActions& out) {
    if (wake_ && *wake_ <= at) return;
    wake_ = at;
    out.emplace_back(net::ServiceWake{at});
}

void HttpService::wake(Instant now, ServiceActions& out) {
    wake_.reset();
    if (drained_by_ && *drained_by_ <= now)
        send_(CancelAll{.cause = answer::Cause::kAbortedByServer,
                        .detail = fmt::format(
                            "the server is shutting down and its drain limit of {:.0f} s is over",
                            base::to_seconds(options_.drain))});
    else if (drained_by_)
        wake_by(*drained_by_, out);
    for (auto& [id, live] : live_) {
        if (!live.head_sent) continue;
        if (now - live.last_sent >= kHeartbeat) {
            send(id, wire::chunk(kComment), out);
            live.last_sent = now;
        }
        wake_by(live.last_sent + kHeartbeat, out);
    }
}

void HttpService::deliver(const EngineEvents& events, const Occupancy& occupancy,
                          ServiceActions& out) {
    occupancy_ = occupancy;
    for (const EngineEvent& event : events)
        std::visit([&](const auto& what) { on(what, out); }, event);
}

void HttpService::on(const Refused& event, ServiceActions& out) {
    metrics_.ended(event.end);
    const auto found = live_.find(event.id);
    if (found == live_.end()) return;
    ErrorWords words = error_words(event.end);
    words.code = event.code;
    fail(event.id, found->second, event.end, words, event.retry_after, out);
    live_.erase(found);
}

void HttpService::on(const Admitted& event, ServiceActions& out) {
    const auto found = live_.find(event.id);
    if (found == live_.end() || !found->second.stream) return;
    Live& live = found->second;
    send(event.id,
         wire::stream_head("text/event-stream",
                           {{"Connection", live.asker.keep_alive ? "keep-alive" : "close"},
                            {"X-Request-Id", live.names.request_id},
                            {"Server", "fullstop"}}),
         out);
    live.head_sent = true;
    live.last_sent = event.at;
    wake_by(event.at + kHeartbeat, out);
}

void HttpService::on(const Produced& event, ServiceActions& out) {
    metrics_.token(event);
    const auto found = live_.find(event.id);
    if (found == live_.end()) return;
    if (!event.text.empty()) found->second.last_sent = event.at;
    show(event.id, found->second, event.text, event.tokens, out);
}

void HttpService::show(ConnectionId id, Live& live, std::string_view text,
                       std::span<const ShownToken> tokens, ServiceActions& out) const {
    if (text.empty() && tokens.empty()) return;
    if (live.stream) {
        send(id,
             event_chunk(text_event(live.names, {text, tokens, live.characters},
                                    !std::exchange(live.role_sent, true))),
             out);
        live.characters += characters_in(tokens);
    } else {
        live.text += text;
        live.tokens.insert(live.tokens.end(), tokens.begin(), tokens.end());
    }
}

void HttpService::on(const Ended& event, ServiceActions& out) {
    metrics_.ended(event.end);
    const auto found = live_.find(event.id);
    if (found == live_.end()) return;
    Live& live = found->second;
    show(event.id, live, event.text, event.tokens, out);
    if (finish_reason(event.end.cause))
        finish(event.id, live, event.end, out);
    else
        fail(event.id, live, event.end, error_words(event.end), {}, out);
    live_.erase(found);
}

void HttpService::finish(ConnectionId id, const Live& live, const AnswerEnd& end,
                         ServiceActions& out) const {
    if (!live.stream)
        return respond(live.asker, 200, kJson,
                       whole_body(live.names, end, {live.text, live.tokens}), out);
    std::string bytes;
    if (!live.role_sent && live.names.route == Route::kChat)
        bytes += event_chunk(text_event(live.names, {""}, true));
    bytes += event_chunk(finish_event(live.names, end, live.include_usage));
    if (live.include_usage) bytes += event_chunk(usage_event(live.names, end));
    bytes += event_chunk("[DONE]") + wire::last_chunk();
    send(id, std::move(bytes), out);
    out.emplace_back(net::ServiceClose{
        .id = id, .kind = net::CloseKind::kFin, .keep_alive = live.asker.keep_alive});
}

/// Before the head: a status. After it: an error object, no `[DONE]`, no last chunk.
void HttpService::fail(ConnectionId id, const Live& live, const AnswerEnd& end,
                       const ErrorWords& words, std::optional<base::Duration> retry,
                       ServiceActions& out) const {
    const bool partial = !live.stream && end.cause == answer::Cause::kGenerationTimeLimit &&
                         live.on_deadline == OnDeadline::kPartial;
    const std::string body = partial
                                 ? partial_body(live.names, end, words, {live.text, live.tokens})
                                 : error_body(live.names, end, words);
    if (!live.head_sent) {
        return respond(live.asker, words.status, kJson, body, out,
                       retry ? retry_after(*retry) : wire::Headers{});
    }
    send(id, event_chunk(body), out);
    out.emplace_back(
        net::ServiceClose{.id = id, .kind = net::CloseKind::kFin, .keep_alive = false});
}

std::int64_t HttpService::unix_seconds(Instant now) const {
    return (options_.started_wall.unix_ns + (now - options_.started).count()) / 1'000'000'000;
}

}  // namespace fullstop::engine
