// The parts, services and connections of a virtual world, and the queue of moments at which
// something reaches one of them. VirtualWorld is its outside.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "net/event.h"
#include "net/service.h"
#include "simulator/world/http_request.h"
#include "simulator/world/virtual_world.h"

namespace fullstop::simulator {

/// The first instant of every world; not zero, so that a forgotten Instant shows.
inline constexpr base::Instant kBeginning{std::chrono::hours(1)};

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

/// Open to the world that owns it.
struct VirtualNetwork {
    VirtualNetwork(std::uint64_t seed, NetworkSettings chosen) : settings(chosen), random(seed) {}

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

}  // namespace fullstop::simulator
