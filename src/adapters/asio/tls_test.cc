// TLS between the real host and real TLS peers: what is trusted, what is not and in which words,
// and that bytes, ends and stamps mean the same as on plain connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "adapters/asio/channel.h"
#include "adapters/asio/client/host.h"
#include "adapters/asio/process.h"
#include "adapters/asio/server/server.h"
#include "adapters/asio/test_peer.h"

namespace fullstop::adapters::asio {
namespace {

using ::testing::HasSubstr;

/// A self-signed certificate for `name`, made by the openssl program.
struct Certificate {
    explicit Certificate(const std::string& name)
        : file(::testing::TempDir() + "fullstop_" + std::to_string(::getpid()) + "_" + name +
               ".pem"),
          key(file + ".key") {
        const auto made = Child::start(
            {.program = "openssl",
             .arguments = {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                           "-nodes", "-days", "2", "-subj", "/CN=" + name, "-addext",
                           "subjectAltName=DNS:" + name, "-keyout", key, "-out", file}});
        if (!made || (*made)->read_line(std::chrono::seconds(30)).value_or("?").has_value() ||
            !std::filesystem::exists(file))
            throw std::runtime_error("openssl could not make a certificate");
    }
    ~Certificate() {
        std::filesystem::remove(file);
        std::filesystem::remove(key);
    }
    Certificate(const Certificate&) = delete;
    Certificate& operator=(const Certificate&) = delete;
    std::string file, key;
};

class TlsTest : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        localhost = std::make_unique<Certificate>("localhost");
        elsewhere = std::make_unique<Certificate>("elsewhere.invalid");
    }
    static void TearDownTestSuite() {
        localhost.reset();
        elsewhere.reset();
    }
    /// A server that handshakes with `certificate` and runs `script` on the channel.
    static std::function<void(int)> serving(const Certificate& certificate,
                                            std::function<void(Channel&, int fd)> script) {
        const auto context = std::make_shared<base::Result<TlsContext>>(
            TlsContext::server(certificate.file, certificate.key));
        return [context, script = std::move(script)](int fd) {
            {
                const auto channel = (*context)->channel_from(fd);
                if (channel->handshake().status == Io::Status::kDone) script(*channel, fd);
            }
            ::close(fd);
        };
    }
    static std::string read_line(Channel& channel) {
        std::string line;
        std::array<char, 4096> buffer{};
        std::int64_t stamp = 0;
        while (line.find('\n') == std::string::npos) {
            const Io io = channel.read(buffer, stamp);
            if (io.status != Io::Status::kDone) break;
            line.append(buffer.data(), io.bytes);
        }
        return line;
    }
    static void write_all(Channel& channel, std::string_view bytes) {
        while (!bytes.empty()) {
            const Io io = channel.write(bytes);
            if (io.status != Io::Status::kDone) return;
            bytes.remove_prefix(io.bytes);
        }
    }
    Script::Seen exchange(std::uint16_t port, bool tls, HostOptions options,
                          const std::string& host = "localhost",
                          base::Duration timeout = std::chrono::seconds(20)) {
        Script script;
        script.on_start = [&](base::Instant, net::Actions& out) {
            out.push_back(net::Connect{1, {.host = host, .port = port, .tls = tls}, timeout});
            out.push_back(net::Send{1, "GET / HTTP/1.1\r\n\r\n"});
        };
        auto running = Host::create(loop, std::move(options));
        EXPECT_TRUE(running.has_value());
        (*running)->add(script);
        (*running)->run_until_done();
        return script.seen[1];
    }
    static HostOptions trusting(const Certificate& certificate) {
        return {.ca_file = certificate.file};
    }

    Loop loop;
    static std::unique_ptr<Certificate> localhost, elsewhere;
};
std::unique_ptr<Certificate> TlsTest::localhost, TlsTest::elsewhere;

TEST_F(TlsTest, ATrustedServerIsReadToItsAnnouncedEndWithKernelStamps) {
    Peer peer(1, serving(*localhost, [](Channel& channel, int) {
                  write_all(channel, "got " + read_line(channel));
                  channel.say_goodbye();
              }));
    const Script::Seen seen = exchange(peer.port(), true, trusting(*localhost));
    EXPECT_EQ(seen.order, "CSRP") << seen.text;
    EXPECT_EQ(seen.bytes, "got GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(seen.close, net::CloseKind::kFin);
    EXPECT_EQ(seen.text, "");
    ASSERT_FALSE(seen.stamps.empty());
    EXPECT_EQ(std::get<net::Received>(seen.stamps.back().what).clock, answer::StampClock::kKernel);
}

TEST_F(TlsTest, ASelfSignedCertificateIsRefusedWithItsReason) {
    Peer peer(1, serving(*localhost, [](Channel&, int) {}));
    const Script::Seen seen = exchange(peer.port(), true, {.ca_file = {}});
    EXPECT_EQ(seen.order, "F");
    EXPECT_EQ(seen.failure, net::ConnectFailure::kTls);
    EXPECT_THAT(seen.text, HasSubstr("certificate is not trusted: self"));
}

TEST_F(TlsTest, ASelfSignedCertificateIsAcceptedWhenVerificationIsOff) {
    Peer peer(1, serving(*localhost, [](Channel& channel, int) { write_all(channel, "hi"); }));
    EXPECT_EQ(exchange(peer.port(), true, {.verify_tls = false, .ca_file = {}}, "127.0.0.1").bytes,
              "hi");
}

TEST_F(TlsTest, ACertificateOfAnotherNameIsRefused) {
    Peer peer(1, serving(*elsewhere, [](Channel&, int) {}));
    const Script::Seen seen = exchange(peer.port(), true, trusting(*elsewhere));
    EXPECT_EQ(seen.failure, net::ConnectFailure::kTls);
    EXPECT_THAT(seen.text, HasSubstr("ostname mismatch"));
}

TEST_F(TlsTest, TlsToAPlainPortSaysSo) {
    Peer peer(1, [](int fd) {
        char hello[16];
        EXPECT_GT(::recv(fd, hello, sizeof hello, 0), 0);
        send_all(fd, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        receive_all(fd);
        ::close(fd);
    });
    const Script::Seen seen = exchange(peer.port(), true, {.ca_file = {}});
    EXPECT_EQ(seen.failure, net::ConnectFailure::kTls);
    EXPECT_THAT(seen.text, HasSubstr("does not speak TLS on this port; try http://"));
}

TEST_F(TlsTest, PlainToATlsPortSaysSo) {
    Peer peer(1, [](int fd) {
        receive_until(fd, "\r\n\r\n");
        send_all(fd, {"\x15\x03\x01\x00\x02\x02\x46",
                      7});  // alert, fatal, protocol version: what TLS says to what is no TLS
        ::close(fd);
    });
    const Script::Seen seen = exchange(peer.port(), false, {.ca_file = {}});
    EXPECT_EQ(seen.order, "CSRP");
    EXPECT_EQ(seen.text, "the server speaks TLS on this port; try https://");
}

TEST_F(TlsTest, AServerThatAcceptsAndNeverShakesHandsIsATimeOut) {
    Peer peer(1, [](int fd) {
        receive_all(fd);
        ::close(fd);
    });
    const Script::Seen seen =
        exchange(peer.port(), true, {.ca_file = {}}, "127.0.0.1", std::chrono::milliseconds(60));
    EXPECT_EQ(seen.failure, net::ConnectFailure::kTimedOut);
    EXPECT_EQ(seen.text, "the TLS handshake did not finish in time");
}

TEST_F(TlsTest, AHandshakeThatBreaksOffIsATlsFailure) {
    for (const bool by_reset : {false, true}) {
        Peer peer(1, [by_reset](int fd) {
            char hello[4096];
            EXPECT_GT(::recv(fd, hello, sizeof hello, 0), 0);
            by_reset ? reset(fd) : static_cast<void>(::close(fd));
        });
        const Script::Seen seen = exchange(peer.port(), true, {.ca_file = {}}, "127.0.0.1");
        EXPECT_EQ(seen.failure, net::ConnectFailure::kTls);
        EXPECT_THAT(seen.text, HasSubstr("during the TLS handshake"));
    }
}

TEST_F(TlsTest, AnEndWithoutCloseNotifyIsAFinThatSaysSo) {
    Peer peer(1, serving(*localhost, [](Channel& channel, int) {
                  read_line(channel);
                  write_all(channel, "half");
              }));
    const Script::Seen seen = exchange(peer.port(), true, trusting(*localhost));
    EXPECT_EQ(seen.bytes, "half");
    EXPECT_EQ(seen.close, net::CloseKind::kFin);
    EXPECT_EQ(seen.text, "the TLS stream ended without close_notify");
}

TEST_F(TlsTest, AResetInsideAStreamIsAReset) {
    Peer peer(1, serving(*localhost, [](Channel& channel, int fd) {
                  read_line(channel);
                  write_all(channel, "half");
                  const linger at_once{.l_onoff = 1, .l_linger = 0};
                  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
              }));
    const Script::Seen seen = exchange(peer.port(), true, trusting(*localhost));
    EXPECT_EQ(seen.bytes, "half");
    EXPECT_EQ(seen.close, net::CloseKind::kRst);
    EXPECT_EQ(seen.text, "Connection reset by peer");
}

TEST_F(TlsTest, EveryByteComesInOrderWhateverTheRecords) {
    std::string all(3 << 20, '\0');
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = static_cast<char>((i * 2654435761U) >> 13);
    Peer peer(1, serving(*localhost, [&](Channel& channel, int) {
                  read_line(channel);
                  std::size_t size = 1;
                  for (std::size_t at = 0; at < all.size(); at += size, size = size * 5 % 70001 + 1)
                      write_all(channel, std::string_view(all).substr(at, size));
              }));
    const Script::Seen seen = exchange(peer.port(), true, trusting(*localhost));
    EXPECT_TRUE(seen.bytes == all) << seen.bytes.size() << " bytes of " << all.size();
}

TEST_F(TlsTest, OurServerSpeaksTlsToo) {
    class Hello final : public net::Service {
        void request(base::Instant, net::ServiceRequest r, net::ServiceActions& out) override {
            out.push_back(net::ServiceSend{r.id, "HTTP/1.1 200 OK\r\n\r\nhello over TLS"});
            out.push_back(net::ServiceClose{r.id});
        }
        void client_left(base::Instant, net::ConnectionId, net::ServiceActions&) override {}
        void wake(base::Instant, net::ServiceActions&) override {}
    } service;
    const auto server = Server::listen(
        loop, service,
        {.host = "127.0.0.1", .certificate_file = localhost->file, .key_file = localhost->key});
    ASSERT_TRUE(server.has_value());
    const Script::Seen seen = exchange((*server)->port(), true, trusting(*localhost));
    EXPECT_THAT(seen.bytes, HasSubstr("hello over TLS"));
    EXPECT_EQ(seen.close, net::CloseKind::kFin);
    EXPECT_EQ(seen.text, "") << "it says goodbye";
}

TEST_F(TlsTest, FilesThatAreNoCertificatesAreUsageErrors) {
    const auto host = Host::create(loop, {.ca_file = "/nonexistent.pem"});
    ASSERT_FALSE(host.has_value());
    EXPECT_THAT(host.error().message, HasSubstr("/nonexistent.pem"));
    const auto swapped = TlsContext::server(localhost->file, elsewhere->key);
    ASSERT_FALSE(swapped.has_value());
    EXPECT_THAT(swapped.error().message, HasSubstr("cannot use the key"));
}

}  // namespace
}  // namespace fullstop::adapters::asio
