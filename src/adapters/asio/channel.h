// Bytes in and out of one non-blocking socket, plain or TLS, without waiting: the same five calls
// for both, so that the client's and the server's connections are written once. Waiting for
// readiness is the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

using SSL_CTX = struct ssl_ctx_st;

namespace fullstop::adapters::asio {

/// What one call on a channel came to.
struct Io {
    enum class Status {
        kDone,       ///< `bytes` moved (or the handshake is over)
        kWantRead,   ///< nothing now: wait until readable
        kWantWrite,  ///< nothing now: wait until writable
        kEnd,        ///< the peer sent FIN (or close_notify)
        kReset,      ///< RST, or the TLS stream is broken
    };
    Status status = Status::kDone;
    std::size_t bytes = 0;
    int error = 0;  ///< errno, when the system gave one
    std::string
        text;  ///< for kReset, and for an end that TLS did not announce: the reason in words
};

class Channel {
public:
    virtual ~Channel() = default;
    virtual Io handshake() = 0;
    /// `stamp_real_ns`: the kernel's receive stamp of the last segment read, wall clock; 0 when
    /// there is none.
    virtual Io read(std::span<char> into, std::int64_t& stamp_real_ns) = 0;
    virtual Io write(std::string_view bytes) = 0;
    /// True while bytes wait in the channel itself, where no readiness of the socket will announce
    /// them.
    virtual bool holds_bytes() const = 0;
    /// TLS close_notify, as far as it can be sent without waiting.
    virtual void say_goodbye() = 0;
};

/// `stamps`: enable_receive_stamps() was called for it.
std::unique_ptr<Channel> plain_channel(int fd, bool stamps);

struct TlsClientOptions {
    bool verify = true;   ///< false: accept any certificate (self-signed home servers)
    std::string ca_file;  ///< PEM trusted besides the system's store; "" for none
};

/// Certificates and settings of many TLS channels.
class TlsContext {
public:
    static base::Result<TlsContext> client(const TlsClientOptions& options);
    static base::Result<TlsContext> server(const std::string& certificate_file,
                                           const std::string& key_file);

    /// As client: `host` is checked against the certificate and named in SNI unless it is an
    /// address.
    std::unique_ptr<Channel> channel_to(int fd, const std::string& host) const;
    std::unique_ptr<Channel> channel_from(int fd) const;

private:
    struct Free {
        void operator()(SSL_CTX* context) const;
    };
    explicit TlsContext(SSL_CTX* context) : context_(context) {}
    std::unique_ptr<SSL_CTX, Free> context_;
};

/// Linux's words for an errno, without the number.
std::string system_words(int error);

}  // namespace fullstop::adapters::asio
