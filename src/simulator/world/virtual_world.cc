// A queue of moments, and the connections that they belong to.
#include "simulator/world/virtual_world.h"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "simulator/world/http_request.h"

namespace fullstop::simulator {
namespace {

/// The first instant of every world; not zero, so that a forgotten Instant shows.
constexpr base::Instant kBeginning{std::chrono::hours(1)};
/// Wall time at kBeginning: an arbitrary fixed date.
constexpr std::int64_t kWallAtBeginning = 1'767'225'600'000'000'000;
/// A refused connect takes one round trip.
constexpr std::string_view kRefusedText = "Connection refused";

struct Wire {
    std::size_t part = 0;
    net::ConnectionId part_id = 0;    ///< the part's own name
    net::Service* service = nullptr;  ///< absent while the address does not answer
    bool client_open = true, server_open = true;
    base::Instant to_server{},
        to_client{};  ///< when the last thing sent that way arrives: nothing overtakes
    std::deque<std::string> up, down;  ///< bytes under way, in order
    RequestReader reader;
    bool request_running = false;
    bool head_shown = false;
    bool wants_close = true;  ///< the client asked for Connection: close, or its body is not read
};

enum class What {
    kConnected,
    kRefused,
    kTlsFailed,
    kConnectTimeout,
    kSent,
    kToServer,
    kToClient,
    kClientGone,
    kServerFin,
    kServerRst,
    kTimer,
    kWake,
    kInterrupt
};

struct Moment {
    base::Instant at;
    std::uint64_t order;
    What what;
    std::uint64_t subject;         ///< wire, timer generation, or service index
    std::uint64_t object = 0;      ///< part, for timers
    std::uint64_t generation = 0;  ///< of a timer or wake
    bool operator>(const Moment& other) const {
        return std::pair(at, order) > std::pair(other.at, other.order);
    }
};

struct HostedPart {
    net::Part* part;
    bool started = false;
    std::map<net::ConnectionId, std::uint64_t> wires;
    std::unordered_map<net::TimerId, std::uint64_t> timers;  ///< current generation
};

struct HostedService {
    net::Service* service;
    std::uint64_t wake_generation = 0;
};

}  // namespace

struct VirtualWorld::State {
    State(std::uint64_t seed, NetworkSettings chosen) : settings(chosen), random(seed) {}

    NetworkSettings settings;
    base::Random random;
    base::Instant now = kBeginning;
    std::uint64_t order = 0, generation = 0, next_wire = 1, handled = 0;
    std::priority_queue<Moment, std::vector<Moment>, std::greater<>> queue;
    std::vector<HostedPart> parts;
    std::vector<HostedService> services;
    std::map<std::pair<std::string, std::uint16_t>, std::size_t>
        addresses;  ///< service index, or kSwallowed
    std::unordered_map<std::uint64_t, Wire> wires;
    net::Actions actions;                 ///< scratch
    net::ServiceActions service_actions;  ///< scratch

    static constexpr std::size_t kSwallowed = static_cast<std::size_t>(-1);

    void schedule(base::Instant at, What what, std::uint64_t subject, std::uint64_t object = 0,
                  std::uint64_t gen = 0) {
        queue.push({std::max(at, now), order++, what, subject, object, gen});
    }
    base::Duration latency() {
        return settings.latency + base::Duration(static_cast<std::int64_t>(random.exponential(
                                      static_cast<double>(settings.jitter.count()))));
    }
    /// Arrival of what is sent now on a one-way path whose last arrival was `last`.
    base::Instant arrival(base::Instant& last) { return last = std::max(last, now + latency()); }

    Wire* wire(std::uint64_t id) {
        const auto found = wires.find(id);
        return found == wires.end() ? nullptr : &found->second;
    }
    void forget(std::uint64_t id) {
        const auto found = wires.find(id);
        if (found == wires.end()) return;
        if (found->second.client_open || found->second.server_open) return;
        parts[found->second.part].wires.erase(found->second.part_id);
        wires.erase(found);
    }
    std::size_t index_of(const net::Service* service) const {
        return static_cast<std::size_t>(
            std::ranges::find(services, service, &HostedService::service) - services.begin());
    }

    void start_parts();
    bool parts_done() const {
        return std::ranges::all_of(parts, [](const HostedPart& hosted) {
            return hosted.part == nullptr || hosted.part->done();
        });
    }
    void tell(std::size_t part, const net::Event& event);
    void obey(std::size_t part, net::Actions& list);
    void connect(std::size_t part, const net::Connect& action);
    void send(std::size_t part, net::Send& action);
    void close(std::size_t part, const net::Close& action);
    void obey_service(std::size_t service, net::ServiceActions& list);
    void respond(const net::ServiceSend& action);
    void finish(const net::ServiceClose& action);
    void handle(const Moment& moment);
    void handle_wire(const Moment& moment, Wire& wire);
    void to_server(std::uint64_t id, Wire& wire);
    void hand_on(std::uint64_t id, Wire& wire);
    bool head_is_wanted(std::uint64_t id, Wire& wire);
    void to_client(std::uint64_t id, Wire& wire);
    void lose_client(std::uint64_t id, Wire& wire, What what);
};

// Part side
// -------------------------------------------------------------------------------------------------

void VirtualWorld::State::start_parts() {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].started || parts[i].part == nullptr) continue;
        parts[i].started = true;
        net::Actions list;
        parts[i].part->start(now, list);
        obey(i, list);
    }
}

void VirtualWorld::State::tell(std::size_t part, const net::Event& event) {
    if (parts[part].part == nullptr || parts[part].part->done()) return;
    actions.clear();
    parts[part].part->on(event, actions);
    obey(part, actions);
}

void VirtualWorld::State::obey(std::size_t part, net::Actions& list) {
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

void VirtualWorld::State::connect(std::size_t part, const net::Connect& action) {
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

void VirtualWorld::State::send(std::size_t part, net::Send& action) {
    const auto known = parts[part].wires.find(action.id);
    if (known == parts[part].wires.end()) return;
    auto& target = wires.at(known->second);
    schedule(now, What::kSent, known->second);
    if (!target.server_open || target.service == nullptr) return;
    if (action.more) action.bytes += *action.more;
    target.up.push_back(std::move(action.bytes));
    schedule(arrival(target.to_server), What::kToServer, known->second);
}

void VirtualWorld::State::close(std::size_t part, const net::Close& action) {
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

void VirtualWorld::State::obey_service(std::size_t service, net::ServiceActions& list) {
    for (const auto& action : list) {
        if (const auto* sending = std::get_if<net::ServiceSend>(&action)) respond(*sending);
        if (const auto* closing = std::get_if<net::ServiceClose>(&action)) finish(*closing);
        if (const auto* waking = std::get_if<net::ServiceWake>(&action))
            schedule(waking->at, What::kWake, service, 0, ++services[service].wake_generation);
    }
}

void VirtualWorld::State::respond(const net::ServiceSend& action) {
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

void VirtualWorld::State::finish(const net::ServiceClose& action) {
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

void VirtualWorld::State::handle(const Moment& moment) {
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

void VirtualWorld::State::handle_wire(const Moment& moment, Wire& target) {
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

void VirtualWorld::State::to_server(std::uint64_t id, Wire& target) {
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
void VirtualWorld::State::hand_on(std::uint64_t id, Wire& target) {
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

bool VirtualWorld::State::head_is_wanted(std::uint64_t id, Wire& target) {
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

void VirtualWorld::State::to_client(std::uint64_t, Wire& target) {
    const auto bytes = std::move(target.down.front());
    target.down.pop_front();
    if (target.client_open)
        tell(target.part,
             {now, net::Received{target.part_id, bytes, answer::StampClock::kUserSpace}});
}

void VirtualWorld::State::lose_client(std::uint64_t id, Wire& target, What what) {
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

// The world
// -------------------------------------------------------------------------------------------------

VirtualWorld::VirtualWorld(std::uint64_t seed, NetworkSettings settings)
    : state_(std::make_unique<State>(seed, settings)) {}
VirtualWorld::~VirtualWorld() = default;

void VirtualWorld::host(net::Part& part) { state_->parts.push_back({&part, false, {}, {}}); }

void VirtualWorld::dismiss(net::Part& part) {
    for (std::size_t i = 0; i < state_->parts.size(); ++i) {
        auto& hosted = state_->parts[i];
        if (hosted.part != &part) continue;
        hosted.part = nullptr;  // the place stays: wires and timers name it by number
        hosted.timers.clear();
        const auto open = hosted.wires;
        for (const auto& [id, wire] : open) state_->close(i, net::Close{id});
    }
}

void VirtualWorld::serve(std::string host, std::uint16_t port, net::Service& service) {
    if (state_->index_of(&service) == state_->services.size())
        state_->services.push_back({&service});
    state_->addresses[{std::move(host), port}] = state_->index_of(&service);
}

void VirtualWorld::swallow(std::string host, std::uint16_t port) {
    state_->addresses[{std::move(host), port}] = State::kSwallowed;
}

void VirtualWorld::interrupt(base::Instant at) { state_->schedule(at, What::kInterrupt, 0); }

Outcome VirtualWorld::run(base::Duration limit) {
    return run_until([this] { return state_->parts_done(); }, limit);
}

Outcome VirtualWorld::run_until(const std::function<bool()>& until, base::Duration limit) {
    const auto end = state_->now + limit;
    std::size_t at_this_instant = 0;
    state_->start_parts();
    while (!until()) {
        if (state_->queue.empty()) return Outcome::kIdle;
        const auto moment = state_->queue.top();
        if (moment.at > end) {
            state_->now = end;
            return Outcome::kTimeLimit;
        }
        at_this_instant = moment.at > state_->now ? 0 : at_this_instant + 1;
        if (at_this_instant > kMaxEventsPerInstant) return Outcome::kBusyLoop;
        state_->queue.pop();
        state_->handle(moment);
    }
    return Outcome::kDone;
}

base::Instant VirtualWorld::now() const { return state_->now; }
base::WallTime VirtualWorld::wall() const {
    return {kWallAtBeginning + (state_->now - kBeginning).count()};
}
std::uint64_t VirtualWorld::events() const { return state_->handled; }
std::size_t VirtualWorld::open_connections() const { return state_->wires.size(); }

std::string_view to_string(Outcome outcome) {
    switch (outcome) {
        case Outcome::kDone: return "done";
        case Outcome::kTimeLimit: return "virtual time is up";
        case Outcome::kIdle: return "nothing will happen any more";
        case Outcome::kBusyLoop: return "time stands still";
    }
    return "unknown";
}

}  // namespace fullstop::simulator
