// The seam for the serving side: a Service gets whole HTTP requests and answers with raw response
// bytes, so that a scripted server may also break the framing on purpose. Hosted by adapters/asio
// (real) and simulator (virtual).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "net/event.h"

namespace fullstop::net {

/// One request, already parsed and bounded by the host. A connection carries one request at a time;
/// the host answers malformed and oversized requests itself (400, 413, 431) and hands on only whole
/// ones.
struct ServiceRequest {
    ConnectionId id;  ///< unique per request for the life of the host
    std::string method;
    std::string target;
    std::map<std::string, std::string> headers;  ///< lower-case names
    std::string body;
};

/// Bytes for the client, response head included. The host delivers them in order and bounds what it
/// buffers.
struct ServiceSend {
    ConnectionId id;
    std::string bytes;
};
/// The response is over. `keep_alive` true: the connection may carry another request (only after
/// honest framing).
struct ServiceClose {
    ConnectionId id;
    CloseKind kind = CloseKind::kFin;
    bool keep_alive = false;
};
/// Call wake() at this time (one pending wake per service; a new one replaces it).
struct ServiceWake {
    base::Instant at;
};
using ServiceAction = std::variant<ServiceSend, ServiceClose, ServiceWake>;
using ServiceActions = std::vector<ServiceAction>;

class Service {
public:
    virtual ~Service() = default;
    /// The head of a request has come, its body not yet (`request.body` is empty). True: the host
    /// reads the body and calls request(). False: the service answers now; behind an unread body
    /// the connection closes. request() is not called. Nothing is told of a client that leaves, or
    /// is refused by the host, between head() and request().
    virtual bool head(base::Instant, const ServiceRequest&, ServiceActions&) { return true; }
    virtual void request(base::Instant now, ServiceRequest request, ServiceActions& out) = 0;
    /// The client left before ServiceClose; no further action for `id` has an effect.
    virtual void client_left(base::Instant now, ConnectionId id, ServiceActions& out) = 0;
    virtual void wake(base::Instant now, ServiceActions& out) = 0;
    /// The client takes its response slower than it comes: much waits for it in the host (true), or
    /// little again (false). A service that can pauses its source; what others send beyond the
    /// host's bound loses the client.
    virtual void client_lags(base::Instant, ConnectionId, bool, ServiceActions&) {}
    /// False: the process is not there. A host that can refuses the connection; others need not
    /// ask.
    virtual bool listening(base::Instant) const { return true; }
};

}  // namespace fullstop::net
