// Which whole request do these bytes hold? The serving side of the virtual network reads what our
// own encoder writes: a head and Content-Length bytes. Chunked request bodies and pipelining are
// left out (501, and one request at a time).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "net/service.h"

namespace fullstop::simulator {

// name                               value                 at the limit
/// Head of a request. Ours are below 1 KiB.                 431
inline constexpr std::size_t kMaxRequestHeadBytes = 64 * 1024;
/// Body of a request. The longest prompts are a few MiB.    413
inline constexpr std::size_t kMaxRequestBodyBytes = 16 * 1024 * 1024;

/// Collects the bytes of one connection. After `ready` or `refused` further bytes are not looked
/// at.
class RequestReader {
public:
    void bytes(std::string_view more);
    /// The next request's head, once it is whole; its body is empty as yet.
    const net::ServiceRequest* head() const { return body_at_ && !refused_ ? &request_ : nullptr; }
    bool ready() const { return ready_; }
    bool body_follows() const { return body_length_ > 0; }
    /// HTTP status with which the host answers by itself, when the request cannot be handed on.
    std::optional<int> refused() const { return refused_; }
    /// The request, without id; call once when ready. The reader then waits for the next request of
    /// the connection.
    net::ServiceRequest take();

private:
    void read_head();
    bool read_line(std::string_view line);

    std::string buffer_;
    net::ServiceRequest request_;
    std::optional<std::size_t> body_at_;
    std::size_t body_length_ = 0;
    bool ready_ = false;
    std::optional<int> refused_;
};

/// The host's own answer to a request it does not hand on.
std::string refusal_text(int status);

}  // namespace fullstop::simulator
