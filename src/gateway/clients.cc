// What clients bring: who may ask, what is asked, what is refused at once, and what waits.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gateway/gateway.h"
#include "gateway/request/request_head.h"
#include "serving/reply.h"
#include "wire/http/request_path.h"

namespace fullstop::gateway {

bool Gateway::head(base::Instant, const net::ServiceRequest& request, Actions& out) {
    const auto refused = serving::refusal(request, options_.policy.access);
    if (!refused) return true;
    const std::string_view id = header(request, "x-request-id");
    serving::respond(serving::asker_of(request, valid_request_id(id)
                                                    ? std::string(id)
                                                    : fmt::format("fs-{:016x}", random_.next())),
                     refused->status, serving::kJson,
                     error_body(refused->message, "invalid_request_error", refused->code),
                     out.client, refused->headers);
    return false;
}

void Gateway::request(base::Instant now, net::ServiceRequest request, Actions& out) {
    const net::ConnectionId id = request.id;
    const std::string beginning = request.body.substr(0, kMaxFaultBytes);
    const std::size_t told = out.client.size();
    std::string request_id = fmt::format("fs-{:016x}", random_.next());
    guarded(id, {beginning}, now, out,
            [&](std::string&) { take(now, std::move(request), request_id, out); });
    if (live_.contains(id) || out.client.size() > told) return;
    // A fault before there was an exchange.
    serving::respond({.id = id, .request_id = request_id, .keep_alive = false}, 500, serving::kJson,
                     error_body("a fault of this gateway ended this request", "gateway_error",
                                "gateway_rejected"),
                     out.client);
}

void Gateway::take(base::Instant now, net::ServiceRequest request, std::string request_id,
                   Actions& out) {
    const std::string_view sent_id = header(request, "x-request-id");
    const bool id_is_fine = sent_id.empty() || valid_request_id(sent_id);
    if (!sent_id.empty() && id_is_fine) request_id = sent_id;
    if (options_.plant) options_.plant();
    if (!head(now, request, out)) return;  // the keys may be others than when its head came
    const auto reject = [&](int status, std::string_view message, std::string_view code) {
        serving::respond(serving::asker_of(request, request_id), status, serving::kJson,
                         error_body(message, "invalid_request_error", code), out.client);
    };
    if (!id_is_fine)
        return reject(
            400,
            fmt::format("X-Request-Id has at most {} visible ASCII characters", kMaxRequestIdBytes),
            "bad_request_id");
    if (request.method == "CONNECT")
        return reject(405, "this gateway relays to its upstreams and opens no tunnels",
                      "no_tunnel");
    // From here on there is one form of the path, for our pages, for what decides about the request
    // and for the upstream.
    const auto normal = wire::normal_path(request.target);
    if (!normal) return reject(400, normal.error(), "bad_path");
    request.target = normal->target();
    if (own_page(now, request, request_id, out)) return;
    const bool strict = options_.policy.output.any() || budget_.any();
    auto work = read_work(request, strict);
    if (!work) return reject(400, work.error(), "invalid_parameter");
    if (!work->answer && options_.policy.other_paths == OtherPaths::kRefuse &&
        !carries_no_answer(request.method, work->path))
        return reject(403,
                      "this path may carry answers that the gateway cannot judge; "
                      "[paths] other = \"relay\" in its configuration relays them",
                      "path_refused");
    if (const auto object = no_place_for_limit(work->path, work->limits);
        object && options_.policy.output.any())
        return reject(
            400,
            fmt::format("'{}' must be an object: it holds the limit on output tokens", *object),
            "invalid_parameter");
    if (const auto& access = options_.policy.access; !access.keys.open()) {
        work->client = serving::client_name(request, access);
        for (const auto* name : kCredentials) request.headers.erase(name);
    }
    begin(now, std::move(request), std::move(request_id), std::move(*work), out);
}

void Gateway::begin(base::Instant now, net::ServiceRequest request, std::string request_id,
                    Work work, Actions& out) {
    const Policy& policy = options_.policy;
    const net::ConnectionId id = request.id;
    Terms terms{.deadlines = policy.deadlines,
                .heartbeat = policy.heartbeat,
                .retry = policy.retry,
                .continuation = policy.continuation,
                .own_keys = !policy.access.keys.open()};
    if (auto& total = terms.deadlines.total; work.deadline && (!total || *work.deadline < *total))
        total = work.deadline;
    auto exchange = std::make_unique<Exchange>(std::move(request), std::move(request_id),
                                               std::move(work), terms, now);
    const auto at = live_.emplace(id, Entry{.exchange = std::move(exchange)}).first;
    if (at->second.exchange->work().answer) counters_.comes(at->second.exchange->work().client);
    if (draining_) return refuse(at, 503, "the gateway is shutting down", policy.drain, now, out);
    if (options_.memory != nullptr && !at->second.exchange->hold_body(*options_.memory, now))
        return refuse(at, 503, "requests under way hold too much memory, and this one is large",
                      kMemoryRetryAfter, now, out);
    if (!at->second.exchange->work().answer) {
        const Work& plain = at->second.exchange->work();
        const auto among = upstreams_.eligible(plain, {});
        const auto choice = upstreams_.choose(among, plain, std::nullopt, {}, policy.affinity, now);
        if (!choice)
            return refuse(at, 503, "no upstream takes requests now", kMaxRetryAfter, now, out);
        return dispatch(at, *choice, among.size() > 1, now, out);
    }
    const Work& asked = at->second.exchange->work();
    const auto users = static_cast<std::int64_t>(queue_.size()) + upstreams_.running() + 1;
    if (const auto limit = output_limit(
            policy.output, users, asked.limited_everywhere ? asked.max_tokens : std::nullopt)) {
        at->second.exchange->limit_output(*limit);
        metrics_.limited();
    }
    if (set_aside(at, now, out)) wait_or_refuse(at, now, out);
}

/// Budgets; false when the request was refused, or waits for the store of shared ones.
bool Gateway::set_aside(Live::iterator at, base::Instant now, Actions& out) {
    if (!budget_.any()) return true;
    const Work& work = at->second.exchange->work();
    const auto among = upstreams_.eligible(work, {});
    // The most that any upstream may make of it; without a limit and a known window only the prompt
    // is known.
    std::int64_t tokens = 0;
    for (const UpstreamId id : among)
        tokens = std::max(tokens,
                          upstreams_.all().at(id)->need(work, at->second.exchange->max_tokens()));
    if (const auto refusal = budget_.reserve(work.client, work.path, tokens, now))
        return over_budget(at, refusal->message, refusal->retry_after, now, out), false;
    at->second.reserved = tokens;
    return ask_store(at, now, out);
}

/// What it may come to where it can go; without a limit on its answer, its prompt.
Ticket Gateway::ticket_of(const Live::value_type& live) const {
    const Exchange& exchange = *live.second.exchange;
    const Work& work = exchange.work();
    std::int64_t tokens = prompt_tokens(work, kFirstTokensPerByte);
    if (const auto most = exchange.max_tokens())
        for (const UpstreamId id : upstreams_.eligible(work, exchange.tried()))
            tokens = std::max(tokens, upstreams_.all().at(id)->likely_need(work, *most));
    return {.id = live.first,
            .priority = work.priority,
            .client = work.client,
            .arrived = base::Instant{},
            .tokens = tokens,
            .bytes = exchange.body_bytes()};
}

void Gateway::wait_or_refuse(Live::iterator at, base::Instant now, Actions& out) {
    const net::ConnectionId id = at->first;
    const Priority priority = at->second.exchange->work().priority;
    if (upstreams_.eligible(at->second.exchange->work(), {}).empty())
        return refuse(at, 503, "no upstream takes requests now", kMaxRetryAfter, now, out);
    Ticket ticket = ticket_of(*at);
    ticket.arrived = now;
    const auto full = queue_.full(ticket);
    queue_.push(std::move(ticket));
    pump(now, out);
    if (!queue_.contains(id)) return;
    if (!full) return watch(*live_.find(id), now, out);
    queue_.remove(id);
    const base::Duration wait = estimated_wait(priority);
    refuse(live_.find(id), 429,
           fmt::format("the queue is full: {}; the next place is estimated in {:.0f} s", *full,
                       base::to_seconds(wait)),
           std::min(wait, kMaxRetryAfter), now, out);
}

/// How long until a place in the queue is free, from the pace at which answers end.
base::Duration Gateway::estimated_wait(Priority priority) const {
    const auto ahead =
        static_cast<std::int64_t>(std::max<std::size_t>(1, queue_.ahead_of(priority)));
    const base::Duration pace = between_ends_.count() > 0 ? between_ends_ : std::chrono::seconds(1);
    return std::max<base::Duration>(pace * ahead, std::chrono::seconds(1));
}

void Gateway::refuse(Live::iterator at, int status, std::string message,
                     std::optional<base::Duration> retry_after, base::Instant now, Actions& out) {
    std::string bytes;
    at->second.exchange->refuse(status, std::move(message), retry_after, now, bytes);
    settle(at, std::move(bytes), Link::kClosed, now, out);
}

void Gateway::client_left(base::Instant now, net::ConnectionId id, Actions& out) {
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    Entry& entry = found->second;
    metrics_.answer(answer::Cause::kClientCancelled, entry.exchange->upstream_name());
    if (const Work& work = entry.exchange->work(); work.answer)
        metrics_.genai(entry.exchange->record(), {.path = work.path,
                                                  .stream = work.stream,
                                                  .cause = answer::Cause::kClientCancelled,
                                                  .elapsed = entry.exchange->age(now)});
    if (entry.connection != 0)
        out.upstream.emplace_back(net::Close{.id = entry.connection, .kind = net::CloseKind::kFin});
    out.upstream.emplace_back(net::CancelTimer{id});
    keep_record(*entry.exchange, std::nullopt, now);
    release(entry, entry.exchange->begun() ? Showed::kHealth : Showed::kNothing, now);
    forget(found, now, out);
    pump(now, out);
}

void Gateway::client_lags(base::Instant now, net::ConnectionId id, bool lags, Actions& out) {
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    found->second.exchange->hold(lags, now);
    if (found->second.connection != 0)
        out.upstream.emplace_back(net::Flow{.id = found->second.connection, .on = !lags});
}

}  // namespace fullstop::gateway
