// Bytes of one client -> one bounded HTTP/1.1 request, or the answer to give when it is none.
// Beast's parser does the reading; this file sets its bounds, refuses what another reader of the
// same bytes (a proxy in front) may understand otherwise, and turns complaints into a status and a
// sentence. Trailers are read and dropped: they are no headers.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "net/service.h"

namespace fullstop::adapters::asio {

struct RequestLimits {
    std::size_t head_bytes;
    std::size_t body_bytes;
};

class RequestReader {
public:
    explicit RequestReader(RequestLimits limits);
    ~RequestReader();

    enum class Status { kMore, kHead, kWhole, kRefused };
    /// Takes bytes from the front of `bytes`; what it leaves belongs to the next request, or is an
    /// incomplete head that it wants to see again together with what follows. kHead comes once,
    /// before anything of the body is taken.
    Status read(std::string& bytes);

    // After kHead
    const net::ServiceRequest& head(net::ConnectionId id);  ///< the request will have this id
    bool body_follows() const;
    std::size_t announced_bytes() const;  ///< of the body; 0 when it comes in chunks

    /// The client waits for "100 Continue" before it sends the body. True once per request.
    bool wants_continue();
    bool has_begun() const;  ///< some of a request was taken

    // After kWhole
    net::ServiceRequest take();
    bool keep_alive() const;
    bool knows_chunks() const;  ///< HTTP/1.1
    bool wants_body() const;    ///< no HEAD

    // After kRefused: what to answer before closing
    int refusal_status() const;
    std::string refusal_text() const;
    /// What the client calls its request; "" while that is not known, or when it is no name.
    std::string request_id() const;

    void next();  ///< forgets the request and begins anew

private:
    struct State;
    Status refuse(int status, std::string text);
    void look_at_head();
    std::unique_ptr<State> state_;
    RequestLimits limits_;
};

/// A whole response that refuses: JSON in the style of the API, Connection: close.
std::string refusal_response(int status, std::string_view message, std::string_view request_id);

}  // namespace fullstop::adapters::asio
