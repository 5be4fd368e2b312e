// The server against real clients on loopback: whole requests in, raw responses out, and every way
// a client can misbehave.
#include "adapters/asio/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "adapters/asio/test_peer.h"

namespace fullstop::adapters::asio {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string response(std::string_view body, std::string_view extra = "") {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
           std::string(extra) + "\r\n" + std::string(body);
}

/// Answers by target: /echo with the body, kept alive; others as the test adds.
class Answering final : public net::Service {
public:
    std::function<void(base::Instant, const net::ServiceRequest&, net::ServiceActions&)>
        on_request = [](base::Instant, const net::ServiceRequest& r, net::ServiceActions& out) {
            out.push_back(
                net::ServiceSend{r.id, response(r.method + " " + r.target + " " + r.body)});
            out.push_back(net::ServiceClose{r.id, net::CloseKind::kFin, true});
        };
    std::function<bool(const net::ServiceRequest&, net::ServiceActions&)> on_head =
        [](const net::ServiceRequest&, net::ServiceActions&) { return true; };
    std::function<void(base::Instant, net::ServiceActions&)> on_wake = [](base::Instant,
                                                                          net::ServiceActions&) {};
    std::function<void(net::ConnectionId)> on_left = [](net::ConnectionId) {};
    std::vector<net::ServiceRequest> requests;
    std::vector<net::ConnectionId> left;
    std::function<void(net::ConnectionId, bool, net::ServiceActions&)> on_lag =
        [](net::ConnectionId, bool, net::ServiceActions&) {};
    int wakes = 0;

    bool head(base::Instant, const net::ServiceRequest& request,
              net::ServiceActions& out) override {
        return on_head(request, out);
    }
    void request(base::Instant now, net::ServiceRequest request,
                 net::ServiceActions& out) override {
        requests.push_back(request);
        on_request(now, request, out);
    }
    void client_left(base::Instant, net::ConnectionId id, net::ServiceActions&) override {
        left.push_back(id);
        on_left(id);
    }
    void client_lags(base::Instant, net::ConnectionId id, bool lags,
                     net::ServiceActions& out) override {
        on_lag(id, lags, out);
    }
    void wake(base::Instant now, net::ServiceActions& out) override {
        ++wakes;
        on_wake(now, out);
    }
};

class ServerTest : public ::testing::Test {
protected:
    void listen(ServerOptions options = {}) {
        auto made = Server::listen(loop, service, std::move(options));
        ASSERT_TRUE(made.has_value()) << made.error().message;
        server = std::move(*made);
    }
    /// The client blocks in a thread of its own; the loop runs until it returns.
    void run(const std::function<void()>& client) {
        std::thread thread([&] {
            client();
            loop.post([&] { loop.stop(); });
        });
        loop.run();
        thread.join();
    }
    /// Sends `bytes` and returns everything that comes until the server closes.
    std::string talk(const std::string& bytes) {
        std::string answer;
        run([&] {
            const int fd = connect_to(server->port());
            send_all(fd, bytes);
            answer = receive_all(fd);
            ::close(fd);
        });
        return answer;
    }
    Loop loop;
    Answering service;
    std::unique_ptr<Server> server;
};

TEST_F(ServerTest, ARequestArrivesWholeWithLowerCaseHeaders) {
    listen();
    const std::string answer = talk(
        "POST /v1/x?y=1 HTTP/1.1\r\nHost: h\r\nX-Request-ID: Q\r\nAccept: a\r\nAccept: "
        "b\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    EXPECT_THAT(answer, HasSubstr("POST /v1/x?y=1 hello"));
    ASSERT_EQ(service.requests.size(), 1U);
    EXPECT_EQ(service.requests[0].headers["x-request-id"], "Q");
    EXPECT_EQ(service.requests[0].headers["accept"], "a, b");
    EXPECT_EQ(service.requests[0].body, "hello");
}

TEST_F(ServerTest, AnyCutOfARequestIntoReadsGivesTheSameRequest) {
    listen();
    const std::string whole =
        "POST /cut HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;ext=1\r\n "
        "world\r\n0\r\n\r\n";
    run([&] {
        const int fd = connect_to(server->port());
        for (std::size_t cut = 1; cut < whole.size(); ++cut) {
            send_all(fd, whole.substr(0, cut));
            send_all(fd, whole.substr(cut));
            EXPECT_THAT(receive_until(fd, "hello world"), HasSubstr("POST /cut hello world"));
        }
        ::close(fd);
    });
    EXPECT_EQ(service.requests.size(), whole.size() - 1) << "all on one kept connection";
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredOneAfterTheOther) {
    listen();
    std::string many;
    for (int i = 0; i < 2000; ++i) many += "GET /" + std::to_string(i) + " HTTP/1.1\r\n\r\n";
    many += "GET /last HTTP/1.1\r\nConnection: close\r\n\r\n";
    const std::string answer = talk(many);
    EXPECT_THAT(answer, HasSubstr("GET /last"));
    ASSERT_EQ(service.requests.size(), 2001U);
    for (int i = 0; i < 2000; ++i)
        ASSERT_EQ(service.requests[static_cast<std::size_t>(i)].target, "/" + std::to_string(i));
}

TEST_F(ServerTest, GarbageAfterAnAnswerIsRefusedAndTheAnswerStands) {
    listen();
    const std::string answer = talk("GET /a HTTP/1.1\r\n\r\n\x16\x03\x01 garbage\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, HasSubstr("HTTP/1.1 400 Bad Request"));
    EXPECT_THAT(answer, HasSubstr(R"({"error":{"message":"this is not an HTTP/1.1 request)"));
}

TEST_F(ServerTest, AnEndlessHeadIs431) {
    listen();
    EXPECT_THAT(talk("GET / HTTP/1.1\r\nX: " + std::string(kMaxRequestHeadBytes, 'x')),
                StartsWith("HTTP/1.1 431"));
    EXPECT_TRUE(service.requests.empty());
}

TEST_F(ServerTest, AnOversizedBodyIs413WhetherAnnouncedOrNot) {
    listen({.host = "127.0.0.1", .certificate_file = {}, .key_file = {}, .max_body_bytes = 1000});
    EXPECT_THAT(talk("POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n" + std::string(1001, 'b')),
                StartsWith("HTTP/1.1 413"));
    EXPECT_THAT(talk("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n" +
                     std::string(1024, 'b') + "\r\n0\r\n\r\n"),
                StartsWith("HTTP/1.1 413"));
    EXPECT_TRUE(service.requests.empty());
}

TEST_F(ServerTest, AClientThatAsksMaySendItsBody) {
    listen();
    run([&] {
        const int fd = connect_to(server->port());
        send_all(fd, "POST /c HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
        EXPECT_EQ(receive_until(fd, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
        send_all(fd, "ok");
        EXPECT_THAT(receive_until(fd, "ok"), HasSubstr("POST /c ok"));
        ::close(fd);
    });
}

/// Refuses by the head alone, as for a missing key.
bool refuse_by_head(const net::ServiceRequest& r, net::ServiceActions& out) {
    out.push_back(
        net::ServiceSend{r.id, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"});
    out.push_back(net::ServiceClose{r.id, net::CloseKind::kFin, true});
    return false;
}

TEST_F(ServerTest, AServiceMayAnswerToTheHeadBeforeAnyOfTheBody) {
    service.on_head = [](const net::ServiceRequest& r, net::ServiceActions& out) {
        EXPECT_EQ(r.method + r.target + r.headers.at("a") + r.body, "POST/xb");
        return refuse_by_head(r, out);
    };
    listen();
    const std::string head =
        "POST /x HTTP/1.1\r\nA: b\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n";
    EXPECT_THAT(talk(head), AllOf(StartsWith("HTTP/1.1 401"), Not(HasSubstr("100 Continue"))));
    EXPECT_THAT(talk(head + std::string(100000, 'b')),
                AllOf(StartsWith("HTTP/1.1 401"), EndsWith("no")))
        << "and the body that comes all the same takes no answer away";
    EXPECT_TRUE(service.requests.empty());
    EXPECT_TRUE(service.left.empty());
    EXPECT_EQ(server->answering(), 0U);
}

TEST_F(ServerTest, AConnectionIsKeptBehindAHeadThatHasNoBody) {
    service.on_head = [](const net::ServiceRequest& r, net::ServiceActions& out) {
        return r.target != "/no" || refuse_by_head(r, out);
    };
    listen();
    const std::string answer =
        talk("GET /no HTTP/1.1\r\n\r\nGET /yes HTTP/1.1\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("GET /yes")));
    ASSERT_EQ(service.requests.size(), 1U);
}

TEST_F(ServerTest, AClientOfHttp10GetsABodyWithoutChunksAndNoOrderlyEndOfACutOne) {
    bool cut = false;
    service.on_request = [&](base::Instant, const net::ServiceRequest& r,
                             net::ServiceActions& out) {
        out.push_back(net::ServiceSend{
            r.id, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"});
        if (!cut) out.push_back(net::ServiceSend{r.id, "0\r\n\r\n"});
        out.push_back(net::ServiceClose{r.id, net::CloseKind::kFin, !cut});
    };
    listen();
    for (const bool broken : {false, true}) {
        cut = broken;
        std::string got;
        int error = 0;
        run([&] {
            const int fd = connect_to(server->port());
            send_all(fd, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
            char buffer[1024];
            ssize_t n = 0;
            while ((n = ::recv(fd, buffer, sizeof buffer, 0)) > 0)
                got.append(buffer, static_cast<std::size_t>(n));
            error = n < 0 ? errno : 0;
            ::close(fd);
        });
        EXPECT_EQ(error, cut ? ECONNRESET : 0);
        if (!cut) EXPECT_EQ(got, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello");
    }
}

TEST_F(ServerTest, HeadIsAnsweredWithoutABodyOnAConnectionThatIsKept) {
    listen();
    const std::string answer =
        talk("HEAD /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(answer, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n" + response("GET /b "));
}

TEST_F(ServerTest, AClientThatLeavesBeforeItsBodyIsWholeIsNotTold) {
    listen();
    run([&] {
        const int fd = connect_to(server->port());
        send_all(fd, "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhel");
        ::shutdown(fd, SHUT_WR);
        EXPECT_EQ(receive_all(fd), "");
        ::close(fd);
    });
    EXPECT_TRUE(service.left.empty());
    EXPECT_EQ(server->answering(), 0U);
}

TEST_F(ServerTest, AClientThatLeavesIsToldToTheServiceOnce) {
    for (const bool by_reset : {false, true}) {
        service.left.clear();
        service.on_request = [](base::Instant, const net::ServiceRequest& r,
                                net::ServiceActions& out) {
            out.push_back(net::ServiceSend{r.id, "HTTP/1.1 200 OK\r\n\r\nfirst"});
        };
        service.on_left = [&](net::ConnectionId) { loop.stop(); };
        listen();
        std::thread client([&] {
            const int fd = connect_to(server->port());
            send_all(fd, "GET / HTTP/1.1\r\n\r\n");
            receive_until(fd, "first");
            by_reset ? reset(fd) : static_cast<void>(::close(fd));
        });
        loop.run();
        client.join();
        ASSERT_EQ(service.left.size(), 1U);
        EXPECT_EQ(service.left[0], service.requests.back().id);
        EXPECT_EQ(server->connections(), 0U);
        EXPECT_EQ(server->answering(), 0U);
    }
}

TEST_F(ServerTest, AHalfCloseMayBeAllowed) {
    net::ConnectionId waiting = 0;
    service.on_request = [&](base::Instant now, const net::ServiceRequest& r,
                             net::ServiceActions& out) {
        waiting = r.id;
        out.push_back(net::ServiceWake{now + std::chrono::milliseconds(20)});
    };
    service.on_wake = [&](base::Instant, net::ServiceActions& out) {
        out.push_back(net::ServiceSend{waiting, response("late")});
        out.push_back(net::ServiceClose{waiting});
    };
    listen({.host = "127.0.0.1",
            .certificate_file = {},
            .key_file = {},
            .half_close_is_leaving = false});
    run([&] {
        const int fd = connect_to(server->port());
        send_all(fd, "GET / HTTP/1.1\r\n\r\n");
        ::shutdown(fd, SHUT_WR);
        EXPECT_THAT(receive_all(fd), HasSubstr("late"));
        ::close(fd);
    });
    EXPECT_TRUE(service.left.empty());
}

TEST_F(ServerTest, ASlowReaderIsBoundedAndThenLost) {
    constexpr std::size_t kBound = 256 * 1024;
    std::size_t sent = 0;
    net::ConnectionId slow = 0;
    service.on_request = [&](base::Instant now, const net::ServiceRequest& r,
                             net::ServiceActions& out) {
        slow = r.id;
        out.push_back(net::ServiceSend{r.id, "HTTP/1.1 200 OK\r\n\r\n"});
        out.push_back(net::ServiceWake{now});
    };
    service.on_wake = [&](base::Instant now, net::ServiceActions& out) {
        out.push_back(net::ServiceSend{slow, std::string(16 * 1024, 's')});
        sent += 16 * 1024;
        if (service.left.empty()) out.push_back(net::ServiceWake{now});
    };
    service.on_left = [&](net::ConnectionId) { loop.stop(); };
    listen(
        {.host = "127.0.0.1", .certificate_file = {}, .key_file = {}, .max_backlog_bytes = kBound});
    int fd = -1;
    std::thread client([&] {
        fd = connect_to(server->port());
        send_all(fd, "GET / HTTP/1.1\r\n\r\n");
    });
    loop.run();
    client.join();
    EXPECT_EQ(service.left, std::vector{slow});
    EXPECT_LT(sent, 64U << 20) << "kernel buffers and the bound, no more";
    const std::string got = receive_all(fd);
    EXPECT_LE(got.size(), sent) << "and the client sees a reset, not an end";
    ::close(fd);
}

TEST_F(ServerTest, AServiceIsToldWhenItsClientLagsAndWhenItHasCaughtUp) {
    constexpr std::size_t kPiece = 16 * 1024;
    std::size_t sent = 0;
    net::ConnectionId slow = 0;
    std::string told;
    std::atomic<bool> may_read = false;
    service.on_request = [&](base::Instant now, const net::ServiceRequest& r,
                             net::ServiceActions& out) {
        slow = r.id;
        out.push_back(net::ServiceWake{now});
    };
    service.on_wake = [&](base::Instant now, net::ServiceActions& out) {
        if (!told.empty()) return;
        out.push_back(net::ServiceSend{slow, std::string(kPiece, 's')});
        sent += kPiece;
        out.push_back(net::ServiceWake{now});
    };
    service.on_lag = [&](net::ConnectionId id, bool lags, net::ServiceActions& out) {
        EXPECT_EQ(id, slow);
        told += lags ? 'L' : 'c';
        may_read = true;
        if (!lags) out.push_back(net::ServiceClose{id, net::CloseKind::kFin, false});
    };
    listen();
    std::size_t got = 0;
    run([&] {
        const int fd = connect_to(server->port());
        send_all(fd, "GET / HTTP/1.1\r\n\r\n");
        while (!may_read) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        got = receive_all(fd).size();
        ::close(fd);
    });
    EXPECT_EQ(told, "Lc");
    EXPECT_EQ(got, sent);
    EXPECT_TRUE(service.left.empty());
}

TEST_F(ServerTest, OneLargeResponseReachesAClientThatReads) {
    const std::string large(32 << 20, 'L');
    service.on_request = [&](base::Instant, const net::ServiceRequest& r,
                             net::ServiceActions& out) {
        out.push_back(net::ServiceSend{r.id, response(large)});
        out.push_back(net::ServiceClose{r.id});
    };
    listen();
    const std::string answer = talk("GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(answer.size(), response(large).size());
    EXPECT_TRUE(service.left.empty());
}

TEST_F(ServerTest, AnAnswerMayBreakOffByResetAfterItsBytes) {
    service.on_request = [](base::Instant, const net::ServiceRequest& r, net::ServiceActions& out) {
        out.push_back(net::ServiceSend{r.id, "HTTP/1.1 200 OK\r\n\r\nhalf"});
        out.push_back(net::ServiceClose{r.id, net::CloseKind::kRst});
    };
    listen();
    std::string got;
    int error = 0;
    run([&] {
        const int fd = connect_to(server->port());
        send_all(fd, "GET / HTTP/1.1\r\n\r\n");
        got = receive_until(fd, "half");
        char byte = 0;
        error = ::recv(fd, &byte, 1, 0) < 0 ? errno : 0;
        ::close(fd);
    });
    EXPECT_THAT(got, HasSubstr("half"));
    EXPECT_EQ(error, ECONNRESET);
}

TEST_F(ServerTest, OneWakeIsPendingAndANewOneReplacesIt) {
    service.on_request = [](base::Instant now, const net::ServiceRequest& r,
                            net::ServiceActions& out) {
        out.push_back(net::ServiceWake{now + std::chrono::hours(1)});
        out.push_back(net::ServiceWake{now + std::chrono::milliseconds(1)});
        out.push_back(net::ServiceSend{r.id, "HTTP/1.1 200 OK\r\n\r\n"});
    };
    service.on_wake = [&](base::Instant, net::ServiceActions& out) {
        out.push_back(net::ServiceClose{service.requests.back().id});
    };
    listen();
    EXPECT_EQ(talk("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK\r\n\r\n");
    EXPECT_EQ(service.wakes, 1);
}

TEST_F(ServerTest, ATakenPortIsAUsageErrorWithAHint) {
    listen();
    const auto second = Server::listen(
        loop, service,
        {.host = "127.0.0.1", .port = server->port(), .certificate_file = {}, .key_file = {}});
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().kind, base::ErrorKind::kUsage);
    EXPECT_THAT(second.error().message, HasSubstr("the port is taken"));
    EXPECT_THAT(second.error().hint, HasSubstr("free one"));
}

TEST_F(ServerTest, AnAddressOfAnotherMachineIsAUsageError) {
    const auto made = Server::listen(
        loop, service, {.host = "192.0.2.1", .port = 0, .certificate_file = {}, .key_file = {}});
    ASSERT_FALSE(made.has_value());
    EXPECT_THAT(made.error().message, HasSubstr("no such address"));
}

TEST_F(ServerTest, DrainingClosesIdleConnectionsAndLetsAnswersFinish) {
    net::ConnectionId waiting = 0;
    bool drained = false;
    service.on_request = [&](base::Instant now, const net::ServiceRequest& r,
                             net::ServiceActions& out) {
        if (r.target == "/quick") {
            out.push_back(net::ServiceSend{r.id, response("quick")});
            out.push_back(net::ServiceClose{r.id, net::CloseKind::kFin, true});
            return;
        }
        waiting = r.id;
        loop.post([&] { server->drain([&] { drained = true, loop.stop(); }); });
        out.push_back(net::ServiceWake{now + std::chrono::milliseconds(20)});
    };
    service.on_wake = [&](base::Instant, net::ServiceActions& out) {
        EXPECT_FALSE(drained);
        out.push_back(net::ServiceSend{waiting, response("slow")});
        out.push_back(net::ServiceClose{waiting, net::CloseKind::kFin, true});
    };
    listen();
    std::string idle_end, slow;
    std::thread client([&] {
        const int idle = connect_to(server->port());
        send_all(idle, "GET /quick HTTP/1.1\r\n\r\n");
        receive_until(idle, "quick");
        const int fd = connect_to(server->port());
        send_all(fd, "GET /slow HTTP/1.1\r\n\r\n");
        slow = receive_all(fd);
        idle_end = receive_all(idle);
        ::close(fd);
        ::close(idle);
    });
    loop.run();
    client.join();
    EXPECT_TRUE(drained);
    EXPECT_THAT(slow, HasSubstr("slow"));
    EXPECT_EQ(idle_end, "");
    EXPECT_EQ(server->connections(), 0U);
}

TEST_F(ServerTest, AServerThatGoesAwayMidAnswerResetsItsClients) {
    service.on_request = [&](base::Instant, const net::ServiceRequest& r,
                             net::ServiceActions& out) {
        out.push_back(net::ServiceSend{r.id, "HTTP/1.1 200 OK\r\n\r\n"});
        loop.post([&] { server.reset(); });
    };
    listen();
    EXPECT_EQ(talk("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK\r\n\r\n");
    EXPECT_TRUE(service.left.empty()) << "the service is not called once its server is gone";
}

}  // namespace
}  // namespace fullstop::adapters::asio
