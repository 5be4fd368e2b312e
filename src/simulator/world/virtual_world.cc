// Runs the moments of its network one after the other, each at its own instant.
#include "simulator/world/virtual_world.h"

#include "simulator/world/virtual_network.h"

namespace fullstop::simulator {
namespace {

/// Wall time at kBeginning: an arbitrary fixed date.
constexpr std::int64_t kWallAtBeginning = 1'767'225'600'000'000'000;

}  // namespace

VirtualWorld::VirtualWorld(std::uint64_t seed, NetworkSettings settings)
    : network_(std::make_unique<VirtualNetwork>(seed, settings)) {}
VirtualWorld::~VirtualWorld() = default;

void VirtualWorld::host(net::Part& part) { network_->parts.push_back({&part, false, {}, {}}); }

void VirtualWorld::dismiss(net::Part& part) {
    for (std::size_t i = 0; i < network_->parts.size(); ++i) {
        auto& hosted = network_->parts[i];
        if (hosted.part != &part) continue;
        hosted.part = nullptr;  // the place stays: wires and timers name it by number
        hosted.timers.clear();
        const auto open = hosted.wires;
        for (const auto& [id, wire] : open) network_->close(i, net::Close{id});
    }
}

void VirtualWorld::serve(std::string host, std::uint16_t port, net::Service& service) {
    if (network_->index_of(&service) == network_->services.size())
        network_->services.push_back({&service});
    network_->addresses[{std::move(host), port}] = network_->index_of(&service);
}

void VirtualWorld::swallow(std::string host, std::uint16_t port) {
    network_->addresses[{std::move(host), port}] = VirtualNetwork::kSwallowed;
}

void VirtualWorld::interrupt(base::Instant at) { network_->schedule(at, What::kInterrupt, 0); }

Outcome VirtualWorld::run(base::Duration limit) {
    return run_until([this] { return network_->parts_done(); }, limit);
}

Outcome VirtualWorld::run_until(const std::function<bool()>& until, base::Duration limit) {
    const auto end = network_->now + limit;
    std::size_t at_this_instant = 0;
    network_->start_parts();
    while (!until()) {
        if (network_->queue.empty()) return Outcome::kIdle;
        const auto moment = network_->queue.top();
        if (moment.at > end) {
            network_->now = end;
            return Outcome::kTimeLimit;
        }
        at_this_instant = moment.at > network_->now ? 0 : at_this_instant + 1;
        if (at_this_instant > kMaxEventsPerInstant) return Outcome::kBusyLoop;
        network_->queue.pop();
        network_->handle(moment);
    }
    return Outcome::kDone;
}

base::Instant VirtualWorld::now() const { return network_->now; }
base::WallTime VirtualWorld::wall() const {
    return {kWallAtBeginning + (network_->now - kBeginning).count()};
}
std::uint64_t VirtualWorld::events() const { return network_->handled; }
std::size_t VirtualWorld::open_connections() const { return network_->wires.size(); }

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
