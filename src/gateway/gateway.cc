// What upstreams and time bring: responses are passed on, and end. How requests come in stands in
// clients.cc, who is placed where in dispatch.cc, budgets that several gateways share in
// sharing.cc, the gateway's own pages in pages.cc.
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

// The upstreams
// -------------------------------------------------------------------------------------------------

void Gateway::pass_on(const net::Event& event, Actions& out) {
    if (const auto* fired = std::get_if<net::TimerFired>(&event.what))
        return on_timer(event.at, fired->id, out);
    const auto on = [&](net::ConnectionId connection, const auto& tell, Link link) {
        const auto attempt = attempts_.find(connection);
        if (attempt == attempts_.end()) return;
        const auto found = live_.find(attempt->second);
        guarded(found->first, {bytes_of(event), link}, event.at, out, [&](std::string& bytes) {
            Exchange& exchange = *found->second.exchange;
            tell(exchange, bytes);
            if (options_.plant) options_.plant();
            if (std::string more = exchange.further_bytes(); !more.empty())
                out.upstream.emplace_back(net::Send{connection, std::move(more)});
            if (!exchange.wants_another())
                return settle(found, std::move(bytes), link, event.at, out);
            if (!bytes.empty())
                out.client.emplace_back(net::ServiceSend{found->first, std::move(bytes)});
            try_elsewhere(found, link, event.at, out);
        });
    };
    if (const auto* connected = std::get_if<net::Connected>(&event.what)) {
        on(
            connected->id,
            [&](Exchange& e, std::string&) {
                out.upstream.emplace_back(e.first_bytes(connected->id));
            },
            Link::kOpen);
    } else if (const auto* failed = std::get_if<net::ConnectFailed>(&event.what)) {
        on(
            failed->id,
            [&](Exchange& e, std::string& bytes) {
                e.not_connected(failed->why, failed->text, event.at, bytes);
            },
            Link::kClosed);
    } else if (const auto* received = std::get_if<net::Received>(&event.what)) {
        on(
            received->id,
            [&](Exchange& e, std::string& bytes) { e.received(received->bytes, event.at, bytes); },
            Link::kOpen);
    } else if (const auto* closed = std::get_if<net::PeerClosed>(&event.what)) {
        const Stop stop = closed->kind == net::CloseKind::kRst ? Stop::kRst : Stop::kFin;
        on(
            closed->id,
            [&](Exchange& e, std::string& bytes) {
                e.stopped(stop, closed->text, event.at, bytes);
            },
            Link::kClosed);
    }
}

void Gateway::read_on(const net::Event& event, Actions& out) {
    const auto* received = std::get_if<net::Received>(&event.what);
    const auto attempt = received != nullptr ? attempts_.find(received->id) : attempts_.end();
    if (attempt == attempts_.end()) return;
    const auto found = live_.find(attempt->second);
    guarded(found->first, {received->bytes}, event.at, out, [&](std::string& bytes) {
        found->second.exchange->read_on(bytes);
        settle(found, std::move(bytes), Link::kOpen, event.at, out);
    });
}

/// Sends what came of an event, and ends the exchange when it is over.
void Gateway::settle(Live::iterator at, std::string bytes, Link link, base::Instant now,
                     Actions& out) {
    const net::ConnectionId id = at->first;
    Entry& entry = at->second;
    const Exchange& exchange = *entry.exchange;
    if (!bytes.empty()) out.client.emplace_back(net::ServiceSend{id, std::move(bytes)});
    if (!exchange.over()) return;
    out.client.emplace_back(net::ServiceClose{
        .id = id, .kind = exchange.close_kind(), .keep_alive = exchange.keep_alive()});
    if (entry.connection != 0 && link == Link::kOpen)
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
    const Showed showed = !exchange.begun() && ours ? Showed::kNothing
                          : failed                  ? Showed::kFailure
                                                    : Showed::kHealth;
    if (entry.connection != 0) release(entry, showed, now);
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
                settle(live_.begin(), std::move(bytes), Link::kOpen, now, out);
            });
        }
        return;
    }
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    guarded(id, {}, now, out, [&](std::string& bytes) {
        found->second.exchange->on_time(now, bytes);
        settle(found, std::move(bytes), Link::kOpen, now, out);
    });
    if (const auto still = live_.find(id); still != live_.end()) watch(*still, now, out);
}

void Gateway::drain(base::Instant now, Actions& out) {
    if (std::exchange(draining_, true)) return;
    out.upstream.emplace_back(net::SetTimer{.id = kDrainTimer, .at = now + options_.policy.drain});
}

}  // namespace fullstop::gateway
