// TLS over one non-blocking socket, on OpenSSL directly: its own BIO lets encrypted reads carry the
// kernel's stamps and writes stay free of SIGPIPE, and the reason of a failed handshake can be told
// in words a user can act on.
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <fmt/core.h>

#include "adapters/asio/channel.h"
#include "adapters/asio/client/stamp.h"
#include "base/assert.h"

namespace fullstop::adapters::asio {
namespace {

/// What the BIO works on; owned by the channel.
struct Wire {
    int fd = -1;
    std::int64_t stamp_real_ns = 0;
    int error = 0;  ///< errno of the last call that failed for good
    bool ended = false;
};

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

int wire_read(BIO* bio, char* into, int size) {
    auto* wire = static_cast<Wire*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    std::int64_t stamp = 0;
    const std::int64_t got = receive(wire->fd, {into, static_cast<std::size_t>(size)}, stamp);
    if (got > 0) wire->stamp_real_ns = stamp;
    if (got == 0) wire->ended = true;
    if (got < 0 && would_block(errno)) BIO_set_retry_read(bio);
    if (got < 0 && !would_block(errno)) wire->error = errno;
    return static_cast<int>(got);
}

int wire_write(BIO* bio, const char* from, int size) {
    auto* wire = static_cast<Wire*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const ssize_t put = ::send(wire->fd, from, static_cast<std::size_t>(size), MSG_NOSIGNAL);
    if (put < 0 && (would_block(errno) || errno == EINTR)) BIO_set_retry_write(bio);
    if (put < 0 && !would_block(errno) && errno != EINTR) wire->error = errno;
    return static_cast<int>(put);
}

// OpenSSL asks a BIO to flush and for its end of file; a socket has nothing to flush.
long wire_control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return static_cast<Wire*>(BIO_get_data(bio))->ended ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* wire_method() {
    static BIO_METHOD* const method = [] {
        BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "fullstop socket");
        FULLSTOP_ASSERT(m != nullptr, "OpenSSL can make a BIO method");
        BIO_meth_set_read(m, wire_read);
        BIO_meth_set_write(m, wire_write);
        BIO_meth_set_ctrl(m, wire_control);
        return m;
    }();
    return method;
}

std::string openssl_words(unsigned long code) {
    const char* words = ERR_reason_error_string(code);
    return words != nullptr ? words : fmt::format("OpenSSL error {:#x}", code);
}

class TlsChannel final : public Channel {
public:
    TlsChannel(SSL_CTX* context, int fd) : ssl_(SSL_new(context)) {
        FULLSTOP_ASSERT(ssl_ != nullptr, "OpenSSL can make a session");
        wire_.fd = fd;
        BIO* bio = BIO_new(wire_method());
        FULLSTOP_ASSERT(bio != nullptr, "OpenSSL can make a BIO");
        BIO_set_data(bio, &wire_);
        BIO_set_init(bio, 1);
        SSL_set_bio(ssl_, bio, bio);
    }
    ~TlsChannel() override { SSL_free(ssl_); }
    TlsChannel(const TlsChannel&) = delete;
    TlsChannel& operator=(const TlsChannel&) = delete;

    SSL* session() { return ssl_; }

    Io handshake() override {
        ERR_clear_error();
        const int result = SSL_do_handshake(ssl_);
        return result == 1 ? Io{} : trouble(result);
    }

    Io read(std::span<char> into, std::int64_t& stamp_real_ns) override {
        ERR_clear_error();
        std::size_t got = 0;
        const int result = SSL_read_ex(ssl_, into.data(), into.size(), &got);
        stamp_real_ns = wire_.stamp_real_ns;
        return result == 1 ? Io{.bytes = got, .text = {}} : trouble(result);
    }

    Io write(std::string_view bytes) override {
        ERR_clear_error();
        std::size_t put = 0;
        const int result = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &put);
        return result == 1 ? Io{.bytes = put, .text = {}} : trouble(result);
    }

    bool holds_bytes() const override { return SSL_has_pending(ssl_) == 1; }

    void say_goodbye() override {
        if (SSL_is_init_finished(ssl_) == 1 && wire_.error == 0 && !broken_) SSL_shutdown(ssl_);
        ERR_clear_error();
    }

private:
    Io trouble(int result) {
        const int kind = SSL_get_error(ssl_, result);
        if (kind == SSL_ERROR_WANT_READ) return {.status = Io::Status::kWantRead, .text = {}};
        if (kind == SSL_ERROR_WANT_WRITE) return {.status = Io::Status::kWantWrite, .text = {}};
        if (kind == SSL_ERROR_ZERO_RETURN) return {.status = Io::Status::kEnd, .text = {}};
        broken_ = true;
        const unsigned long code = ERR_get_error();
        if (wire_.error != 0)
            return {.status = Io::Status::kReset,
                    .error = wire_.error,
                    .text = system_words(wire_.error) +
                            (SSL_is_init_finished(ssl_) == 0 ? " during the TLS handshake" : "")};
        if (wire_.ended)
            return {.status = Io::Status::kEnd,
                    .text = "the TLS stream ended without close_notify"};
        return {.status = Io::Status::kReset, .text = words(code)};
    }

    std::string words(unsigned long code) const {
        const long verdict = SSL_get_verify_result(ssl_);
        if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED && verdict != X509_V_OK)
            return fmt::format("its certificate is not trusted: {}",
                               X509_verify_cert_error_string(verdict));
        switch (ERR_GET_REASON(code)) {
            case SSL_R_WRONG_VERSION_NUMBER:
            case SSL_R_PACKET_LENGTH_TOO_LONG:
            case SSL_R_RECORD_TOO_SMALL:
            case SSL_R_HTTP_REQUEST:
                if (SSL_is_init_finished(ssl_) == 0)
                    return fmt::format(
                        "the server does not speak TLS on this port; try http:// ({})",
                        openssl_words(code));
                break;
            default: break;
        }
        return "TLS: " + openssl_words(code);
    }

    Wire wire_;
    SSL* ssl_;
    bool broken_ = false;
};

SSL_CTX* new_context(const SSL_METHOD* method) {
    SSL_CTX* context = SSL_CTX_new(method);
    FULLSTOP_ASSERT(context != nullptr, "OpenSSL can make a context");
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    // Read ahead: one system call for a record instead of two (its header, its body).
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    // Every exchange is a fresh connection: a resumed session would hide the cost and the faults of
    // a handshake.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return context;
}

bool is_address(const std::string& host) {
    in6_addr six{};
    in_addr four{};
    return inet_pton(AF_INET, host.c_str(), &four) == 1 ||
           inet_pton(AF_INET6, host.c_str(), &six) == 1;
}

}  // namespace

void TlsContext::Free::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

base::Result<TlsContext> TlsContext::client(const TlsClientOptions& options) {
    ERR_clear_error();
    TlsContext made(new_context(TLS_client_method()));
    SSL_CTX_set_verify(made.context_.get(), options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                       nullptr);
    // A machine without a store of certificates still reaches self-signed servers and those of
    // ca_file.
    if (options.verify) SSL_CTX_set_default_verify_paths(made.context_.get());
    if (!options.ca_file.empty() &&
        SSL_CTX_load_verify_file(made.context_.get(), options.ca_file.c_str()) != 1)
        return base::usage_error(fmt::format("cannot read certificates from {}: {}",
                                             options.ca_file, openssl_words(ERR_get_error())),
                                 "give a PEM file");
    const unsigned char protocols[] = "\x08http/1.1";
    SSL_CTX_set_alpn_protos(made.context_.get(), protocols, sizeof protocols - 1);
    return made;
}

base::Result<TlsContext> TlsContext::server(const std::string& certificate_file,
                                            const std::string& key_file) {
    ERR_clear_error();
    TlsContext made(new_context(TLS_server_method()));
    // A key with a passphrase is refused: OpenSSL's own answer is to ask on the terminal and wait.
    SSL_CTX_set_default_passwd_cb(made.context_.get(), [](char*, int, int, void*) { return -1; });
    if (SSL_CTX_use_certificate_chain_file(made.context_.get(), certificate_file.c_str()) != 1)
        return base::usage_error(fmt::format("cannot use the certificate {}: {}", certificate_file,
                                             openssl_words(ERR_get_error())),
                                 "give a PEM file");
    if (SSL_CTX_use_PrivateKey_file(made.context_.get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1)
        return base::usage_error(
            fmt::format("cannot use the key {}: {}", key_file, openssl_words(ERR_get_error())),
            "give the PEM key of the certificate, without a passphrase");
    return made;
}

std::unique_ptr<Channel> TlsContext::channel_to(int fd, const std::string& host) const {
    auto channel = std::make_unique<TlsChannel>(context_.get(), fd);
    SSL_set_connect_state(channel->session());
    if (is_address(host)) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(channel->session()), host.c_str());
    } else {
        SSL_set_tlsext_host_name(channel->session(), host.c_str());
        SSL_set1_host(channel->session(), host.c_str());
    }
    return channel;
}

std::unique_ptr<Channel> TlsContext::channel_from(int fd) const {
    auto channel = std::make_unique<TlsChannel>(context_.get(), fd);
    SSL_set_accept_state(channel->session());
    return channel;
}

}  // namespace fullstop::adapters::asio
