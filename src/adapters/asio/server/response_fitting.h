// What a service says, as its client can read it: HTTP/1.0 knows no chunks, so a body in chunks
// becomes one that ends with the connection; and what answers HEAD, or is a 204 or 304, has no
// body, whatever the service sends behind the head. Bytes are taken away only; where the rest
// passes by unchanged, no object of this kind is made.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "wire/http/http_framing.h"

namespace fullstop::adapters::asio {

class ResponseFitting {
public:
    struct Client {
        bool knows_chunks;  ///< HTTP/1.1
        bool wants_body;    ///< anything but HEAD
    };
    /// Nothing for a response, seen by its first bytes, that fits as it is.
    static std::unique_ptr<ResponseFitting> of(Client client, std::string_view first_bytes);

    std::string pass(std::string_view bytes);
    /// The connection has to end with the body.
    bool ends_by_close() const { return unchunked_; }
    /// False: the body broke off, which an orderly close would hide.
    bool whole() const { return !unchunked_ || framing_.complete(); }

private:
    explicit ResponseFitting(Client client) : client_(client) {}
    std::string head();

    Client client_;
    wire::HttpFraming framing_;
    std::string raw_head_;
    bool head_passed_ = false, bodyless_ = false, unchunked_ = false;
};

}  // namespace fullstop::adapters::asio
