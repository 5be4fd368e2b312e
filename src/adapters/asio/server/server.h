// The real serving side: HTTP/1.1 on a listening socket in front of one net::Service. It parses and
// bounds requests, answers broken ones itself, watches for clients that leave, and bounds what it
// buffers for slow ones. What the response is, head included, is the service's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "adapters/asio/limits.h"
#include "adapters/asio/loop.h"
#include "base/result.h"
#include "net/memory_budget.h"
#include "net/service.h"

namespace fullstop::adapters::asio {

struct ServerOptions {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;        ///< 0: the system picks one
    std::string certificate_file;  ///< PEM; with key_file: serve TLS
    std::string key_file;
    /// A client that sends FIN while it waits for its answer has left, as all common clients do
    /// when they give up. False: it may still read, and is only gone when a write fails.
    bool half_close_is_leaving = true;
    std::size_t max_head_bytes = kMaxRequestHeadBytes;
    std::size_t max_body_bytes = kMaxRequestBodyBytes;
    std::size_t max_backlog_bytes = kMaxResponseBacklogBytes;
    std::size_t max_connections = kMaxServedConnections;
    net::MemoryBudget* memory = nullptr;  ///< outlives the server; absent: one of its own
    base::Duration request_timeout = kRequestTimeout;
};

class Server {
public:
    /// Listens at once; serves while `loop` runs. `service` must outlive the server.
    /// Errors: usage, when the port is taken, forbidden, or no address of this machine.
    static base::Result<std::unique_ptr<Server>> listen(Loop& loop, net::Service& service,
                                                        ServerOptions options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    std::uint16_t port() const;
    std::size_t connections() const;  ///< open now
    std::size_t answering()
        const;  ///< requests of which the service has seen the head, and that are not over

    /// Takes no further connection; kept connections without a request are closed. `drained` is
    /// called (once) when the last one is over. What still runs then is the service's to end.
    void drain(std::function<void()> drained);

    /// What the service wants done for a reason of its own (a worker has results), in this turn of
    /// the loop. On the loop's thread.
    void act(net::ServiceActions actions);

private:
    struct State;
    explicit Server(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

}  // namespace fullstop::adapters::asio
