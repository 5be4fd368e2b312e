// What each action of a part or service leads to, and when it arrives.
#include "simulator/world/virtual_network.h"

namespace fullstop::simulator {
namespace {

/// A refused connect takes one round trip.
constexpr std::string_view kRefusedText = "Connection refused";

}  // namespace

// Part side
// -------------------------------------------------------------------------------------------------

void VirtualNetwork::start_parts() {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].started || parts[i].part == nullptr) continue;
        parts[i].started = true;
        net::Actions list;
        parts[i].part->start(now, list);
        obey(i, list);
    }
}

void VirtualNetwork::tell(std::size_t part, const net::Event& event) {
    if (parts[part].part == nullptr || parts[part].part->done()) return;
    actions.clear();
    parts[part].part->on(event, actions);
    obey(part, actions);
    if (!std::holds_alternative<net::Received>(event.what) || parts[part].part == nullptr) return;
    actions.clear();
    parts[part].part->read_on(event, actions);
    obey(part, actions);
}

void VirtualNetwork::obey(std::size_t part, net::Actions& list) {
    for (auto& action : list) {
        if (auto* connecting = std::get_if<net::Connect>(&action)) connect(part, *connecting);
        if (auto* sending = std::get_if<net::Send>(&action)) send(part, *sending);
        if (auto* closing = std::get_if<net::Close>(&action)) close(part, *closing);
        if (auto* timer = std::get_if<net::SetTimer>(&action)) {
            parts[part].timers[timer->id] = ++generation;
            schedule(timer->at, What::kTimer, timer->id, part, generation);
        }
        if (auto* timer = std::get_if<net::CancelTimer>(&action))
            parts[part].timers.erase(timer->id);
    }
}

void VirtualNetwork::connect(std::size_t part, const net::Connect& action) {
    const auto id = next_wire++;
    parts[part].wires[action.id] = id;
    Wire made;
    made.part = part;
    made.part_id = action.id;
    const auto found = addresses.find({action.endpoint.host, action.endpoint.port});
    const auto there = now + latency();
    if (found == addresses.end()) {
        schedule(there + latency(), What::kRefused, id);
    } else if (found->second == kSwallowed) {
        schedule(now + action.timeout, What::kConnectTimeout, id);
    } else {
        made.service = services[found->second].service;
        schedule(there + latency(), action.endpoint.tls ? What::kTlsFailed : What::kConnected, id);
    }
    wires.emplace(id, std::move(made));
}

void VirtualNetwork::send(std::size_t part, net::Send& action) {
    const auto known = parts[part].wires.find(action.id);
    if (known == parts[part].wires.end()) return;
    auto& target = wires.at(known->second);
    schedule(now, What::kSent, known->second);
    if (!target.server_open || target.service == nullptr) return;
    if (action.more) action.bytes += *action.more;
    target.up.push_back(std::move(action.bytes));
    schedule(arrival(target.to_server), What::kToServer, known->second);
}

void VirtualNetwork::close(std::size_t part, const net::Close& action) {
    const auto known = parts[part].wires.find(action.id);
    if (known == parts[part].wires.end()) return;
    const auto id = known->second;
    auto& target = wires.at(id);
    target.client_open = false;
    parts[part].wires.erase(known);
    if (target.server_open) schedule(arrival(target.to_server), What::kClientGone, id);
    forget(id);
}

// Service side
// -------------------------------------------------------------------------------------------------

void VirtualNetwork::obey_service(std::size_t service, net::ServiceActions& list) {
    for (const auto& action : list) {
        if (const auto* sending = std::get_if<net::ServiceSend>(&action)) respond(*sending);
        if (const auto* closing = std::get_if<net::ServiceClose>(&action)) finish(*closing);
        if (const auto* waking = std::get_if<net::ServiceWake>(&action))
            schedule(waking->at, What::kWake, service, 0, ++services[service].wake_generation);
    }
}

void VirtualNetwork::respond(const net::ServiceSend& action) {
    auto* target = wire(action.id);
    if (target == nullptr || !target->server_open || action.bytes.empty()) return;
    const auto push = [&](std::string_view piece) {
        target->down.emplace_back(piece);
        schedule(arrival(target->to_client), What::kToClient, action.id);
    };
    std::string_view rest = action.bytes;
    const bool split = random.chance(settings.split_chance);
    while (!rest.empty()) {
        const auto most = std::min(rest.size(), settings.max_read);
        const auto size = split ? 1 + random.below(most) : most;
        push(rest.substr(0, size));
        rest.remove_prefix(size);
    }
}

void VirtualNetwork::finish(const net::ServiceClose& action) {
    auto* target = wire(action.id);
    if (target == nullptr || !target->server_open) return;
    target->request_running = false;
    if (action.keep_alive && !target->wants_close && action.kind == net::CloseKind::kFin) {
        return hand_on(action.id, *target);
    }
    target->server_open = false;
    schedule(arrival(target->to_client),
             action.kind == net::CloseKind::kFin ? What::kServerFin : What::kServerRst, action.id);
}

// Moments
// -------------------------------------------------------------------------------------------------

void VirtualNetwork::handle(const Moment& moment) {
    now = moment.at;
    ++handled;
    if (moment.what == What::kTimer) {
        auto& timers = parts[moment.object].timers;
        const auto found = timers.find(moment.subject);
        if (found == timers.end() || found->second != moment.generation) return;
        timers.erase(found);
        return tell(moment.object, {now, net::TimerFired{moment.subject}});
    }
    if (moment.what == What::kWake) {
        if (services[moment.subject].wake_generation != moment.generation) return;
        service_actions.clear();
        services[moment.subject].service->wake(now, service_actions);
        return obey_service(moment.subject, service_actions);
    }
    if (moment.what == What::kInterrupt) {
        for (std::size_t i = 0; i < parts.size(); ++i)
            if (parts[i].started) tell(i, {now, net::Interrupted{}});
        return;
    }
    if (auto* target = wire(moment.subject)) handle_wire(moment, *target);
}

void VirtualNetwork::handle_wire(const Moment& moment, Wire& target) {
    const auto id = moment.subject;
    switch (moment.what) {
        case What::kConnected:
            // A dead process refuses; that is known only when the packet gets there.
            if (!target.service->listening(now)) return lose_client(id, target, What::kRefused);
            if (target.client_open) tell(target.part, {now, net::Connected{target.part_id}});
            return;
        case What::kSent:
            if (target.client_open) tell(target.part, {now, net::Sent{target.part_id}});
            return;
        case What::kToServer: return to_server(id, target);
        case What::kToClient: return to_client(id, target);
        case What::kClientGone: {
            const bool running = target.request_running;
            auto* service = target.service;
            target.server_open = false;
            forget(id);
            if (!running) return;
            service_actions.clear();
            service->client_left(now, id, service_actions);
            return obey_service(index_of(service), service_actions);
        }
        default: return lose_client(id, target, moment.what);
    }
}

void VirtualNetwork::to_server(std::uint64_t id, Wire& target) {
    const auto bytes = std::move(target.up.front());
    target.up.pop_front();
    if (!target.server_open) return;
    target.reader.bytes(bytes);
    if (target.reader.refused()) {
        target.down.push_back(refusal_text(*target.reader.refused()));
        schedule(arrival(target.to_client), What::kToClient, id);
        target.server_open = false;
        schedule(arrival(target.to_client), What::kServerFin, id);
    } else if (!target.request_running) {
        hand_on(id, target);
    }
}

/// What has come of the next request: its head once, then the whole of it.
void VirtualNetwork::hand_on(std::uint64_t id, Wire& target) {
    if (!target.head_shown && (target.reader.head() == nullptr || !head_is_wanted(id, target)))
        return;
    if (!target.reader.ready()) return;
    auto request = target.reader.take();
    request.id = id;
    target.head_shown = false;
    target.request_running = true;
    auto* service = target.service;
    net::ServiceActions
        list;  // own list: a service may close keep-alive at once, and the next request be waiting
    service->request(now, std::move(request), list);
    obey_service(index_of(service), list);
}

bool VirtualNetwork::head_is_wanted(std::uint64_t id, Wire& target) {
    auto head = *target.reader.head();
    head.id = id;
    const auto connection = head.headers.find("connection");
    const bool asked = connection != head.headers.end() && connection->second == "close";
    target.wants_close = asked || target.reader.body_follows();
    target.request_running = target.head_shown = true;
    net::ServiceActions list;
    const bool wanted = target.service->head(now, head, list);
    if (wanted) {
        target.wants_close = asked;
        target.request_running = false;
    } else if (target.reader.ready()) {
        target.reader.take();
        target.head_shown = false;
    }
    obey_service(index_of(target.service), list);
    return wanted;
}

void VirtualNetwork::to_client(std::uint64_t, Wire& target) {
    const auto bytes = std::move(target.down.front());
    target.down.pop_front();
    if (target.client_open)
        tell(target.part,
             {now, net::Received{target.part_id, bytes, answer::StampClock::kUserSpace}});
}

void VirtualNetwork::lose_client(std::uint64_t id, Wire& target, What what) {
    const auto part = target.part;
    const auto part_id = target.part_id;
    const bool tell_it = target.client_open;
    target.client_open = target.server_open = false;
    forget(id);
    if (!tell_it) return;
    if (what == What::kServerFin)
        return tell(part, {now, net::PeerClosed{part_id, net::CloseKind::kFin, ""}});
    if (what == What::kServerRst)
        return tell(part, {now, net::PeerClosed{part_id, net::CloseKind::kRst,
                                                "Connection reset by peer"}});
    if (what == What::kRefused)
        return tell(part, {now, net::ConnectFailed{part_id, net::ConnectFailure::kRefused,
                                                   std::string(kRefusedText)}});
    if (what == What::kTlsFailed)
        return tell(part, {now, net::ConnectFailed{part_id, net::ConnectFailure::kTls,
                                                   "the virtual network does not play TLS"}});
    tell(part, {now, net::ConnectFailed{part_id, net::ConnectFailure::kTimedOut,
                                        "Connection timed out"}});
}

}  // namespace fullstop::simulator
