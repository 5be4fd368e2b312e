// The gateway between clients and one upstream: requests and upstream events in, actions for both sides out. Sans-IO: no
// socket, clock or thread; a rim wires it to a server for the clients and to a client host for the upstream.
//
// Each request gets a connection to the upstream for itself, whose name is the request's. One that carried a whole answer is
// kept for a next request. Nothing that the upstream may have read is ever sent twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/random.h"
#include "gateway/exchange.h"
#include "gateway/limits.h"
#include "gateway/metrics.h"
#include "net/event.h"
#include "net/service.h"

namespace fullstop::gateway {

/// What is to be done on either side, in order.
struct Actions {
    net::ServiceActions client;
    net::Actions upstream;
};

struct GatewayOptions {
    wire::ServerUrl upstream;
    std::string version;
    std::optional<base::Duration> idle = kDefaultIdle;
    base::Duration drain = kDefaultDrain;
    std::uint64_t entropy = 0;  ///< for request ids
};

class Gateway {
public:
    explicit Gateway(GatewayOptions options);

    // From the clients' side (net::Service)
    void request(base::Instant now, const net::ServiceRequest& request, Actions& out);
    /// The upstream's connection is closed at once, whatever it was doing.
    void client_left(base::Instant now, net::ConnectionId id, Actions& out);

    /// Back-pressure: the upstream is not read while its client lags.
    void client_lags(base::Instant now, net::ConnectionId id, bool lags, Actions& out);

    // From the upstream's side (net::Part)
    void upstream(const net::Event& event, Actions& out);

    /// No new requests (503); running answers go on until the drain limit, then they end with a reason.
    void drain(base::Instant now, Actions& out);
    bool drained() const { return draining_ && live_.empty(); }
    std::size_t running() const { return live_.size(); }

private:
    using Live = std::unordered_map<net::ConnectionId, std::unique_ptr<Exchange>>;

    bool own_page(const net::ServiceRequest& request, const std::string& request_id, Actions& out);
    void respond(const net::ServiceRequest& request, int status, std::string_view type, std::string_view body, const std::string& request_id, Actions& out,
                 const wire::Headers& more = {}) const;
    void on_timer(base::Instant now, net::TimerId id, Actions& out);
    void watch(net::ConnectionId id, const Exchange& exchange, Actions& out) const;
    void settle(Live::iterator at, std::string bytes, bool upstream_open, Actions& out);
    std::string status_body() const;

    GatewayOptions options_;
    Route route_;
    base::Random random_;
    Metrics metrics_;
    Live live_;
    bool draining_ = false;
};

}  // namespace fullstop::gateway
