// The seam between parts and the world. A host turns sockets and clocks into Events with a time; a
// part answers with Actions. Two hosts exist: adapters/asio (real sockets) and simulator (virtual
// time). No Boost type is visible here.
//
// Names of connections and timers are chosen by the part; a host that runs several parts keeps
// their names apart. Every exchange uses a fresh connection unless its part asks otherwise
// (Connect::reuse), as no probe does; nothing that a server may have read is ever sent again by a
// host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "answer/record.h"
#include "base/time.h"

namespace fullstop::net {

using ConnectionId = std::uint64_t;
using TimerId = std::uint64_t;

struct Endpoint {
    std::string host;
    std::uint16_t port = 80;
    bool tls = false;
    bool operator==(const Endpoint&) const = default;
};

/// Why no connection came about.
enum class ConnectFailure { kResolve, kRefused, kUnreachable, kTimedOut, kTls, kOther };
enum class CloseKind { kFin, kRst };

// Events: host -> part
// -------------------------------------------------------------------------------------------------
struct Connected {
    ConnectionId id;
};
struct ConnectFailed {
    ConnectionId id;
    ConnectFailure why;
    std::string text;  ///< the system's or TLS library's words
};
/// Everything given to Send so far has been handed to the kernel.
struct Sent {
    ConnectionId id;
};
/// `bytes` live until the call returns. Event::at is the kernel's receive stamp when `clock` says
/// so.
struct Received {
    ConnectionId id;
    std::string_view bytes;
    answer::StampClock clock;
};
struct PeerClosed {
    ConnectionId id;
    CloseKind kind;
    std::string text;  ///< for RST and TLS errors, the system's words; else ""
};
struct TimerFired {
    TimerId id;
};
/// Ctrl-C or a termination signal: finish reporting what there is.
struct Interrupted {};

struct Event {
    base::Instant at;
    std::variant<Connected, ConnectFailed, Sent, Received, PeerClosed, TimerFired, Interrupted>
        what;
};

// Actions: part -> host
// -------------------------------------------------------------------------------------------------
struct Connect {
    ConnectionId id;
    Endpoint endpoint;
    base::Duration timeout;  ///< resolve, TCP and TLS together; afterwards ConnectFailed{kTimedOut}
    /// A connection that was closed with `keep` may serve again. Its server may be about to close
    /// it: when it does, and has not acknowledged a byte of what was sent, the host sends the same
    /// once more on a fresh connection.
    bool reuse = false;
};
struct Send {
    ConnectionId id;
    std::string bytes;
    std::shared_ptr<const std::string> more =
        {};  ///< sent behind `bytes`; shared, because a large body is held once only
};
/// No further event comes for this connection. kRst asks the kernel to send a reset (SO_LINGER 0).
struct Close {
    ConnectionId id;
    CloseKind kind = CloseKind::kFin;
    bool keep = false;  ///< the exchange was whole by its framing, and the server said nothing
                        ///< against another one
};
/// Reading from a connection pauses (`on` false) or goes on; meanwhile the kernel's buffers hold
/// the peer back. An end of the connection is told once all that came before it was read.
struct Flow {
    ConnectionId id;
    bool on = true;
};
/// Setting a timer again moves it.
struct SetTimer {
    TimerId id;
    base::Instant at;
};
struct CancelTimer {
    TimerId id;
};
using Action = std::variant<Connect, Send, Close, Flow, SetTimer, CancelTimer>;
using Actions = std::vector<Action>;

/// A sans-IO part: reads no clock, no socket, no file. `on` appends what the host must do. The host
/// calls `start` once before the first event and stops delivering events once `done`.
class Part {
public:
    virtual ~Part() = default;
    virtual void start(base::Instant now, Actions& out) = 0;
    virtual void on(const Event& event, Actions& out) = 0;
    /// Behind on() of a Received, when all that it wanted is done and the bytes still live: for
    /// reading that must delay no byte.
    virtual void read_on(const Event&, Actions&) {}
    virtual bool done() const = 0;
};

}  // namespace fullstop::net
