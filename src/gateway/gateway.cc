// The life of requests: they come, wait, are passed on, end. Who is placed where stands in
// dispatch.cc, budgets that several gateways share in sharing.cc, the gateway's own pages in
// pages.cc.
#include "gateway/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gateway/request/request_head.h"
#include "net/limits.h"
#include "wire/http/request_path.h"

namespace fullstop::gateway {
namespace {

/// Requests are numbered from 1 by the host, so 0 is free.
constexpr net::TimerId kDrainTimer = 0;

std::string_view bytes_of(const net::Event& event) {
    const auto* received = std::get_if<net::Received>(&event.what);
    return received == nullptr ? std::string_view() : received->bytes;
}

}  // namespace

Gateway::Gateway(GatewayOptions options)
    : options_(std::move(options)),
      random_(options_.entropy),
      queue_(options_.policy.queue),
      budget_(options_.policy.budgets) {
    upstreams_.configure(options_.policy.upstreams);
}

// Clients
// -------------------------------------------------------------------------------------------------

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
                      "what is asked for at this path could be an answer that this gateway does "
                      "not know how to judge; "
                      "[paths] other = \"relay\" in its configuration passes it on",
                      "path_refused");
    if (const auto object = no_place_for_limit(work->path, work->limits);
        object && options_.policy.output.any())
        return reject(
            400,
            fmt::format("'{}' is an object, in which the limit on output tokens stands", *object),
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
        return refuse(at, 503, "too much is held for requests under way, and this one is large",
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
    if (const auto limit = output_limit(policy.output, users,
                                        asked.surely_limited ? asked.max_tokens : std::nullopt)) {
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
        return over_budget(at, refusal->words, refusal->retry_after, now, out), false;
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

void Gateway::refuse(Live::iterator at, int status, std::string words,
                     std::optional<base::Duration> retry_after, base::Instant now, Actions& out) {
    std::string bytes;
    at->second.exchange->refuse(status, std::move(words), retry_after, now, bytes);
    settle(at, std::move(bytes), false, now, out);
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
    release(entry, entry.exchange->begun(), false, now);
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

// The upstreams
// -------------------------------------------------------------------------------------------------

void Gateway::pass_on(const net::Event& event, Actions& out) {
    if (const auto* fired = std::get_if<net::TimerFired>(&event.what))
        return on_timer(event.at, fired->id, out);
    const auto on = [&](net::ConnectionId connection, const auto& tell, bool open) {
        const auto attempt = attempts_.find(connection);
        if (attempt == attempts_.end()) return;
        const auto found = live_.find(attempt->second);
        guarded(found->first, {bytes_of(event), open}, event.at, out, [&](std::string& bytes) {
            Exchange& exchange = *found->second.exchange;
            tell(exchange, bytes);
            if (options_.plant) options_.plant();
            if (std::string more = exchange.further_bytes(); !more.empty())
                out.upstream.emplace_back(net::Send{connection, std::move(more)});
            if (!exchange.wants_another())
                return settle(found, std::move(bytes), open, event.at, out);
            if (!bytes.empty())
                out.client.emplace_back(net::ServiceSend{found->first, std::move(bytes)});
            try_elsewhere(found, open, event.at, out);
        });
    };
    if (const auto* connected = std::get_if<net::Connected>(&event.what)) {
        on(
            connected->id,
            [&](Exchange& e, std::string&) {
                out.upstream.emplace_back(e.first_bytes(connected->id));
            },
            true);
    } else if (const auto* failed = std::get_if<net::ConnectFailed>(&event.what)) {
        on(
            failed->id,
            [&](Exchange& e, std::string& bytes) {
                e.not_connected(failed->why, failed->text, event.at, bytes);
            },
            false);
    } else if (const auto* received = std::get_if<net::Received>(&event.what)) {
        on(
            received->id,
            [&](Exchange& e, std::string& bytes) { e.received(received->bytes, event.at, bytes); },
            true);
    } else if (const auto* closed = std::get_if<net::PeerClosed>(&event.what)) {
        const Stop stop = closed->kind == net::CloseKind::kRst ? Stop::kRst : Stop::kFin;
        on(
            closed->id,
            [&](Exchange& e, std::string& bytes) {
                e.stopped(stop, closed->text, event.at, bytes);
            },
            false);
    }
}

void Gateway::read_on(const net::Event& event, Actions& out) {
    const auto* received = std::get_if<net::Received>(&event.what);
    const auto attempt = received != nullptr ? attempts_.find(received->id) : attempts_.end();
    if (attempt == attempts_.end()) return;
    const auto found = live_.find(attempt->second);
    guarded(found->first, {received->bytes}, event.at, out, [&](std::string& bytes) {
        found->second.exchange->read_on(bytes);
        settle(found, std::move(bytes), true, event.at, out);
    });
}

/// Sends what came of an event, and ends the exchange when it is over.
void Gateway::settle(Live::iterator at, std::string bytes, bool connection_open, base::Instant now,
                     Actions& out) {
    const net::ConnectionId id = at->first;
    Entry& entry = at->second;
    const Exchange& exchange = *entry.exchange;
    if (!bytes.empty()) out.client.emplace_back(net::ServiceSend{id, std::move(bytes)});
    if (!exchange.over()) return;
    out.client.emplace_back(net::ServiceClose{
        .id = id, .kind = exchange.close_kind(), .keep_alive = exchange.keep_alive()});
    if (entry.connection != 0 && connection_open)
        out.upstream.emplace_back(net::Close{.id = entry.connection,
                                             .kind = net::CloseKind::kFin,
                                             .keep = exchange.upstream_reusable()});
    out.upstream.emplace_back(net::CancelTimer{id});
    keep_record(exchange, exchange.end(), now);
    count(exchange, now);
    if (entry.counted) note_pace(now);
    // Our own limits say nothing about the upstream, silence does.
    const answer::Cause cause = exchange.end().cause;
    const bool ours =
        cause == answer::Cause::kGatewayDeadline || cause == answer::Cause::kGatewayRejected;
    const bool failed =
        !exchange.begun() || (exchange.record().status && *exchange.record().status == 503);
    if (entry.connection != 0) release(entry, exchange.begun() || !ours, failed, now);
    forget(at, now, out);
    pump(now, out);
}

void Gateway::count(const Exchange& exchange, base::Instant now) {
    metrics_.relayed(exchange.upstream_name(), exchange.relayed());
    const End& end = exchange.end();
    if (!end.answer) return metrics_.other(exchange.upstream_name());
    metrics_.answer(end.cause, exchange.upstream_name());
    metrics_.continued(exchange.seams());
    const auto& status = exchange.record().status;
    metrics_.genai(exchange.record(),
                   {.path = exchange.work().path,
                    .stream = exchange.work().stream &&
                              exchange.seams() == 0,  // else its times are of no one server
                    .whole = end.whole && status && *status < 300,
                    .cause = end.cause,
                    .elapsed = exchange.age(now)});
}

void Gateway::forget(Live::iterator at, base::Instant now, Actions& out) {
    const Exchange& exchange = *at->second.exchange;
    queue_.remove(at->first);
    if (exchange.work().answer) {
        if (at->second.reserved > 0) {
            const std::int64_t used = exchange.used_tokens();
            budget_.settle(exchange.work().client, exchange.work().path, at->second.reserved, used,
                           now);
        }
        counters_.gone(exchange.work().client);
    }
    if (at->second.shared)
        out.store.emplace_back(StoreSettle{.id = at->first, .used = exchange.used_tokens()});
    live_.erase(at);
}

void Gateway::learned(UpstreamId id, Capacity capacity, base::Instant now, Actions& out) {
    Upstream* upstream = upstreams_.find(id);
    if (upstream == nullptr) return;
    upstream->learned(std::move(capacity));
    end_stranded(now, out);
    pump(now, out);
}

void Gateway::loaded(UpstreamId id, const Load& load, base::Instant now, Actions& out) {
    Upstream* upstream = upstreams_.find(id);
    if (upstream == nullptr) return;
    upstream->loaded(load, now);
    pump(now, out);
}

void Gateway::configure(Policy policy, base::Instant now, Actions& out) {
    options_.policy = std::move(policy);
    queue_.set_limits(options_.policy.queue);
    budget_.configure(options_.policy.budgets);
    upstreams_.configure(options_.policy.upstreams);
    end_stranded(now, out);
    pump(now, out);
}

/// Who waits for an upstream that is no longer there, or no longer what it was, would wait for
/// ever.
void Gateway::end_stranded(base::Instant now, Actions& out) {
    std::vector<net::ConnectionId> stranded;
    for (const auto& [id, entry] : live_)
        if (entry.exchange->waiting() && takers(*entry.exchange).empty()) stranded.push_back(id);
    for (const net::ConnectionId id : stranded)
        if (const auto at = live_.find(id); at != live_.end())
            refuse(at, 503, "no upstream takes requests any more", kMaxRetryAfter, now, out);
}

// Time
// -------------------------------------------------------------------------------------------------

/// The timer is not moved with every byte; when it fires the exchange looks how late it is.
void Gateway::watch(const Live::value_type& live, base::Instant now, Actions& out) const {
    if (const auto next = live.second.exchange->next_time(now))
        out.upstream.emplace_back(net::SetTimer{.id = live.first, .at = *next});
}

void Gateway::on_timer(base::Instant now, net::TimerId id, Actions& out) {
    if (id == kQueueTimer) return pump(now, out);
    if (id == kDrainTimer) {
        pumping_ = true;  // nothing is placed any more
        while (!live_.empty()) {
            guarded(live_.begin()->first, {}, now, out, [&](std::string& bytes) {
                live_.begin()->second.exchange->shut_down(options_.policy.drain, now, bytes);
                settle(live_.begin(), std::move(bytes), true, now, out);
            });
        }
        return;
    }
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    guarded(id, {}, now, out, [&](std::string& bytes) {
        found->second.exchange->on_time(now, bytes);
        settle(found, std::move(bytes), true, now, out);
    });
    if (const auto still = live_.find(id); still != live_.end()) watch(*still, now, out);
}

void Gateway::drain(base::Instant now, Actions& out) {
    if (std::exchange(draining_, true)) return;
    out.upstream.emplace_back(net::SetTimer{.id = kDrainTimer, .at = now + options_.policy.drain});
}

}  // namespace fullstop::gateway
