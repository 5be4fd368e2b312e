// The gateway on real sockets: a server for its clients and a client host for its upstreams, on one
// loop and one thread. What an event of one side leads to at the other is done in the same turn.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "adapters/asio/client/host.h"
#include "adapters/asio/loop.h"
#include "adapters/asio/server/server.h"
#include "base/result.h"
#include "gateway/gateway.h"
#include "net/memory_budget.h"
#include "running/sharing.h"
#include "running/watching.h"

namespace fullstop::running {

class Relaying final : net::Service, net::Part {
public:
    struct Options {
        adapters::asio::ServerOptions server;
        gateway::GatewayOptions gateway;
    };
    static base::Result<std::unique_ptr<Relaying>> start(adapters::asio::Loop& loop,
                                                         Options options);

    std::uint16_t port() const { return server_->port(); }
    /// Runs the loop until it is stopped: drained, or stop().
    void run() { host_->run_until_done(); }
    /// Another policy, for requests that come from now on; upstreams may come and go.
    void configure(gateway::Policy policy);
    /// No new requests; when the last answer has ended (or the drain limit ended it) the loop
    /// stops.
    void drain();
    std::size_t waiting() const { return gateway_.waiting(); }
    std::size_t running() const { return gateway_.running() - gateway_.waiting(); }

private:
    Relaying(adapters::asio::Loop& loop, gateway::GatewayOptions options);

    bool head(base::Instant now, const net::ServiceRequest& request,
              net::ServiceActions& out) override;
    void request(base::Instant now, net::ServiceRequest request, net::ServiceActions& out) override;
    void client_left(base::Instant now, net::ConnectionId id, net::ServiceActions& out) override;
    void client_lags(base::Instant now, net::ConnectionId id, bool lags,
                     net::ServiceActions& out) override;
    void wake(base::Instant, net::ServiceActions&) override {}  // timers are the upstream side's
    void start(base::Instant, net::Actions&) override {}
    void on(const net::Event& event, net::Actions& out) override;
    void read_on(const net::Event& event, net::Actions& out) override;
    bool done() const override { return false; }  // the loop is stopped from outside

    template <class Decide>
    void decide(const Decide& decide);
    void store_says(const gateway::StoreState& state,
                    const std::vector<gateway::StoreAnswer>& answers);
    void stop_when_drained();
    void watch_upstreams();
    void watch(gateway::UpstreamId id, const gateway::UpstreamOptions& upstream);

    adapters::asio::Loop& loop_;
    net::MemoryBudget memory_;  ///< before everybody who holds something
    gateway::Gateway gateway_;
    bool drained_ = false;
    std::map<gateway::UpstreamId, std::unique_ptr<Watching>> watching_;
    std::vector<std::unique_ptr<Watching>>
        stopped_;                       ///< of upstreams that are gone: a part outlives its host
    std::unique_ptr<Sharing> sharing_;  ///< before the host, as all parts
    std::unique_ptr<adapters::asio::Host> host_;
    std::unique_ptr<adapters::asio::Server>
        server_;  ///< last: its clients leave before the host goes
};

}  // namespace fullstop::running
