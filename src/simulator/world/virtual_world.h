// One clock and one network, both virtual: hosts client parts and services, and lets a whole run
// happen in milliseconds.
//
// Time jumps from event to event; equal times keep the order in which they came about, so a seed
// repeats every byte. Bytes travel with a small random latency, never overtake each other, and may
// be split into reads of any size. Left out: bandwidth, loss, half-closed connections, TLS (a TLS
// connect fails as kTls), and names (host text is the address).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/time.h"
#include "net/event.h"
#include "net/limits.h"
#include "net/service.h"

namespace fullstop::simulator {

struct VirtualNetwork;

struct NetworkSettings {
    base::Duration latency =
        std::chrono::microseconds(120);  ///< one way, at least; a switch between two machines
    base::Duration jitter = std::chrono::microseconds(40);  ///< mean of the exponential part
    double split_chance = 0.05;              ///< of a delivery to be cut into several reads
    std::size_t max_read = net::kReadBytes;  ///< largest read
};

/// Why run() came back.
enum class Outcome {
    kDone,       ///< every part is done (or the condition holds)
    kTimeLimit,  ///< virtual time is up
    kIdle,       ///< parts are not done and nothing will ever happen again
    kBusyLoop,   ///< kMaxEventsPerInstant events without time passing
};
std::string_view to_string(Outcome);

/// Events at one instant before run() gives up: a thousand connections make a few thousand.
inline constexpr std::size_t kMaxEventsPerInstant = 1'000'000;

class VirtualWorld final : public base::Clock {
public:
    explicit VirtualWorld(std::uint64_t seed, NetworkSettings settings = {});
    ~VirtualWorld() override;

    /// Parts and services must outlive the world's last run(). Parts start when run() next begins,
    /// in this order.
    void host(net::Part& part);
    /// The part's connections are closed and it hears nothing more; it may be destroyed. Unknown
    /// parts are ignored.
    void dismiss(net::Part& part);
    void serve(std::string host, std::uint16_t port, net::Service& service);
    /// Connections to this address are never answered.
    void swallow(std::string host, std::uint16_t port);
    /// Every part gets net::Interrupted at this time.
    void interrupt(base::Instant at);

    /// Runs until all hosted parts are done, at most `limit` of virtual time from now.
    Outcome run(base::Duration limit);
    /// The same, but ends as soon as `until` holds (looked at after each event).
    Outcome run_until(const std::function<bool()>& until, base::Duration limit);

    base::Instant now() const override;
    base::WallTime wall() const override;
    std::uint64_t events() const;  ///< handled since the beginning
    std::size_t open_connections() const;

private:
    std::unique_ptr<VirtualNetwork> network_;
};

}  // namespace fullstop::simulator
