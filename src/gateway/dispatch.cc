// Who gets which place: the queue is offered whenever a place may have become free, and an attempt
// that failed before its first byte goes back into it.
#include <algorithm>
#include <utility>

#include "gateway/gateway.h"
#include "net/limits.h"

namespace fullstop::gateway {
namespace {

/// llama-server's message when a pool that several answers share has no cell left; it then ends all
/// of them.
bool pool_ran_full(const answer::Record& record) {
    return record.end.error &&
           record.end.error->text.find("Context size has been exceeded") != std::string::npos;
}

}  // namespace

/// Places that other classes must leave free are left free, as long as there is a known number of
/// places at all.
bool Gateway::floors_allow(Priority priority) const {
    const auto slots = upstreams_.slots();
    if (!slots) return true;
    std::int64_t kept = 0;
    for (std::size_t other = 0; other < kPriorities; ++other)
        if (other != static_cast<std::size_t>(priority))
            kept += std::max(0, options_.policy.queue.floors[other] - running_by_class_[other]);
    return upstreams_.running() + kept < *slots;
}

/// Who may have it, now or later.
std::vector<UpstreamId> Gateway::takers(const Exchange& exchange) const {
    std::vector<UpstreamId> among = upstreams_.eligible(exchange.work(), exchange.tried());
    if (exchange.between_parts())
        std::erase_if(among, [&](UpstreamId id) {
            return !exchange.may_write_the_rest(*upstreams_.all().at(id));
        });
    return among;
}

Queue::Reply Gateway::place(const Ticket& ticket, bool overdue, std::set<UpstreamId>& claimed,
                            base::Instant now, Actions& out) {
    const auto at = live_.find(ticket.id);
    const Exchange& exchange = *at->second.exchange;
    if (!overdue && !floors_allow(ticket.priority)) return Queue::Reply::kNoRoom;
    const auto among = takers(exchange);
    const auto choice = upstreams_.choose(among, exchange.work(), exchange.max_tokens(), claimed,
                                          options_.policy.affinity, now);
    if (!choice) {
        // What it waits for is not given to those behind it, however small they are.
        claimed.insert(among.begin(), among.end());
        return claimed.size() >= upstreams_.all().size() ? Queue::Reply::kNobody
                                                         : Queue::Reply::kNoRoom;
    }
    guarded(ticket.id, {}, now, out,
            [&](std::string&) { dispatch(at, *choice, among.size() > 1, now, out); });
    return Queue::Reply::kTaken;
}

void Gateway::pump(base::Instant now, Actions& out) {
    if (std::exchange(pumping_, true)) return;
    std::set<UpstreamId> claimed;
    try {
        queue_.offer(now, counters_, [&](const Ticket& ticket, bool overdue) {
            return place(ticket, overdue, claimed, now, out);
        });
    } catch (const std::exception&) {
        pumping_ = false;  // else nobody would be placed any more
        throw;
    }
    pumping_ = false;
    if (queue_.size() == 0) return;
    std::optional<base::Instant> next = queue_.next_overdue(now);
    if (const auto trial = upstreams_.next_trial(now); trial && (!next || *trial < *next))
        next = trial;
    if (next) out.upstream.emplace_back(net::SetTimer{.id = kQueueTimer, .at = *next});
}

void Gateway::dispatch(Live::iterator at, const Upstreams::Choice& choice, bool others,
                       base::Instant now, Actions& out) {
    Entry& entry = at->second;
    Exchange& exchange = *entry.exchange;
    Upstream& upstream = *upstreams_.find(choice.id);
    entry.counted = exchange.work().answer;
    upstream.take(choice.need, entry.counted);
    upstream.health.began();
    exchange.send_to(choice.id, upstream, choice.need, others, now);
    if (entry.counted) {
        ++running_by_class_[static_cast<std::size_t>(exchange.work().priority)];
        counters_.charge(exchange.work().client, choice.need);
        if (exchange.tried().size() == 1)
            metrics_.waited(exchange.work().priority, exchange.queued(now));
    }
    entry.connection = next_connection_++;
    attempts_.emplace(entry.connection, at->first);
    const wire::ServerUrl& url = upstream.options().url;
    out.upstream.emplace_back(
        net::Connect{.id = entry.connection,
                     .endpoint = {.host = url.host, .port = url.port, .tls = url.tls},
                     .timeout = net::kConnectTimeout,
                     .reuse = true});
    watch(*at, now, out);
}

/// The place at the upstream is free again.
void Gateway::release(Entry& entry, Showed showed, base::Instant now) {
    Exchange& exchange = *entry.exchange;
    attempts_.erase(entry.connection);
    entry.connection = 0;
    Upstream* upstream = upstreams_.find(exchange.upstream());
    if (upstream == nullptr) return;
    switch (showed) {
        case Showed::kNothing: upstream->health.abandoned(); break;
        case Showed::kFailure: upstream->health.failed(now); break;
        case Showed::kHealth: upstream->health.succeeded(); break;
    }
    if (std::exchange(entry.counted, false)) {
        --running_by_class_[static_cast<std::size_t>(exchange.work().priority)];
        upstream->give_back(exchange.need(), true);
        const std::int64_t used = exchange.used_tokens();
        counters_.settle(exchange.work().client, exchange.need(), used);
        if (pool_ran_full(exchange.record())) upstream->overfull();
        if (exchange.record().prompt_tokens)
            upstream->measured(exchange.work(), (*exchange.record().prompt_tokens).count);
    }
    upstreams_.sweep();
}

/// The attempt failed before anything of a response went on, or the rest is to come from elsewhere.
void Gateway::try_elsewhere(Live::iterator at, Link link, base::Instant now, Actions& out) {
    Entry& entry = at->second;
    if (link == Link::kOpen)
        out.upstream.emplace_back(net::Close{.id = entry.connection, .kind = net::CloseKind::kFin});
    if (!entry.exchange->between_parts()) metrics_.retried(entry.exchange->upstream_name());
    release(entry, Showed::kFailure, now);
    entry.exchange->back_in_queue();
    const auto among = takers(*entry.exchange);
    if (among.empty())
        return refuse(at, 503, "the upstream failed and no other one takes requests now",
                      std::chrono::seconds(5), now, out);
    if (!entry.exchange->work().answer) {
        const auto choice = upstreams_.choose(among, entry.exchange->work(), std::nullopt, {},
                                              options_.policy.affinity, now);
        return dispatch(at, *choice, among.size() > 1, now, out);
    }
    // Its place in the queue is the one it had: by arrival.
    Ticket ticket = ticket_of(*at);
    ticket.arrived = now - entry.exchange->age(now);
    queue_.push(std::move(ticket));
    watch(*at, now, out);
    pump(now, out);
}

/// How fast places become free, while somebody waits for one.
void Gateway::note_pace(base::Instant now) {
    constexpr int kSmooth = 8;
    if (last_end_) {
        const base::Duration gap = now - *last_end_;
        between_ends_ =
            between_ends_.count() == 0 ? gap : between_ends_ + (gap - between_ends_) / kSmooth;
    }
    last_end_ = queue_.size() > 0 ? std::optional(now) : std::nullopt;
}

}  // namespace fullstop::gateway
