// The real client side: runs net::Parts (a probe, its observers) on real sockets, clocks and
// signals, in one thread. It owns what parts only name: connections, timers, the moment. Faults of
// peers become events; nothing is retried.
//
// Event::at never goes back within one connection, but may between connections: a kernel stamp
// tells when bytes arrived, not when we came to read them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "adapters/asio/loop.h"
#include "base/result.h"
#include "net/event.h"

namespace fullstop::adapters::asio {

struct HostOptions {
    bool verify_tls = true;     ///< false: accept self-signed certificates (a home server)
    std::string ca_file;        ///< PEM trusted besides the system's store; "" for none
    bool kernel_stamps = true;  ///< false: user-space receive stamps only
    bool signals = true;        ///< SIGINT and SIGTERM become Interrupted while running
};

enum class HostEnd {
    kDone,       ///< every part that is waited for is done
    kAbandoned,  ///< a second SIGINT: parts were left as they were
};

class Host {
public:
    /// Errors: usage, when `options.ca_file` cannot be read.
    static base::Result<std::unique_ptr<Host>> create(Loop& loop, HostOptions options);
    ~Host();
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    /// `kCompanion`: the host does not wait for this part (a sampler beside a probe); its
    /// connections are closed when the others are done. A part must outlive the host. Parts added
    /// while running start in the loop's next turn.
    enum class Wait { kUntilDone, kCompanion };
    void add(net::Part& part, Wait wait = Wait::kUntilDone);

    /// What `part` wants done for a reason of its own (a client came to a gateway), in this turn of
    /// the loop, or when the part has started. On the loop's thread.
    void act(net::Part& part, net::Actions actions);

    /// Starts the parts that were added and runs the loop until those that are waited for are done.
    HostEnd run_until_done();

    /// Every part gets Interrupted, once in the life of the host. What a first SIGINT or SIGTERM
    /// does.
    void interrupt();

private:
    Host(Loop& loop, HostOptions options);
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fullstop::adapters::asio
