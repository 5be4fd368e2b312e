// Clients that mean harm: requests that two readers understand differently, heads that never end,
// connections that only wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "adapters/asio/server/request_reader.h"
#include "adapters/asio/server/server.h"
#include "adapters/asio/test_peer.h"

namespace fullstop::adapters::asio {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kPost = "POST /x HTTP/1.1\r\nHost: h\r\n";

/// As a connection does whose service wants every request.
RequestReader::Status read(RequestReader& reader, std::string& bytes) {
    const auto status = reader.read(bytes);
    return status == RequestReader::Status::kHead ? reader.read(bytes) : status;
}

int status_of(const std::string& request) {
    RequestReader reader({.head_bytes = 4096, .body_bytes = 4096});
    std::string bytes = request;
    switch (read(reader, bytes)) {
        case RequestReader::Status::kWhole: return 200;
        case RequestReader::Status::kMore: return 100;
        case RequestReader::Status::kRefused: return reader.refusal_status();
        default: return 0;
    }
}

TEST(HostileRequest, WhatTwoReadersMayUnderstandDifferentlyIsRefused) {
    const struct {
        std::string rest;
        int status;
    } cases[] = {
        {"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", 400},
        {"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nG", 400},
        {"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400},
        {"Content-Length: +2\r\n\r\n{}", 400},
        {"Content-Length: 0x2\r\n\r\n{}", 400},
        {"Content-Length: \r\n\r\n{}", 400},
        {"Content-Length: 18446744073709551618\r\n\r\n{}", 400},
        {"Content-Length : 2\r\n\r\n{}", 400},
        {"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
        {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
        {"Transfer-Encoding: identity\r\n\r\n", 501},
        {"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
        {"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 501},
        {"Transfer-Encoding: \x0b"
         "chunked\r\n\r\n0\r\n\r\n",
         400},
        {"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400},
        {"X: y\r\n z\r\nContent-Length: 2\r\n\r\n{}", 400},
        {"X: y\r\n\tz\r\nContent-Length: 2\r\n\r\n{}", 400},
        {"X: y\nContent-Length: 2\r\n\r\n{}", 400},
        {"X: y\rContent-Length: 2\r\n\r\n{}", 400},
        {std::string("X: a\0b\r\n\r\n", 10), 400},
        {std::string("X\0Y: a\r\n\r\n", 10), 400},
        {"Host: other\r\n\r\n", 400},
        {"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400},
        {"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n", 400},
        {"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n", 400},
        {"Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n", 400},
        {"Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n", 400},
        {"Transfer-Encoding: chunked\r\n\r\n2;\nxx\r\n{}\r\n0\r\n\r\n", 400},
        {"Transfer-Encoding: chunked\r\n\r\n2;" + std::string(5000, 'a'), 431},
        {"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: " + std::string(5000, 'a'), 431},
        {"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
         200},  // the same said twice is allowed (RFC 9110 8.6)
        {"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n", 200},
        {"Transfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200},
    };
    for (const auto& each : cases)
        EXPECT_EQ(status_of(std::string(kPost) + each.rest), each.status)
            << each.rest.substr(0, 200);
    EXPECT_EQ(status_of("POST /x HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}"), 200);
    EXPECT_EQ(status_of("POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
}

/// Found by fuzz/request_fuzz: Beast takes the first part of a head field by field.
TEST(HostileRequest, TheJudgementDoesNotDependOnThePieces) {
    const struct {
        std::string rest;
        int status;
    } cases[] = {
        {"X: y\r\n z\r\nContent-Length: 2\r\n\r\n{}", 400},
        {"Content-Length: 6\r\n\r\n{\r\n\t }", 200},
        {"Transfer-Encoding: chunked\r\n\r\n6\r\n{\r\n\t }\r\n0\r\n\r\n", 200},
        {"Transfer-Encoding: chunked, gzip\r\n\r\n", 501},
    };
    for (const auto& each : cases) {
        const std::string request = std::string(kPost) + each.rest;
        for (std::size_t first = 1; first < request.size(); ++first)
            for (const std::size_t second : {first + 1, request.size()}) {
                RequestReader reader({.head_bytes = 4096, .body_bytes = 4096});
                std::string bytes = request.substr(0, first);
                auto status = read(reader, bytes);
                if (status == RequestReader::Status::kMore)
                    status = read(reader, bytes.append(request, first, second - first));
                if (status == RequestReader::Status::kMore)
                    status = read(reader, bytes.append(request, second));
                const int got = status == RequestReader::Status::kRefused ? reader.refusal_status()
                                : status == RequestReader::Status::kWhole ? 200
                                                                          : 100;
                ASSERT_EQ(got, each.status)
                    << each.rest << " cut at " << first << " and " << second;
            }
    }
}

TEST(HostileRequest, AnEndlessTrailerOrChunkHeadIsBounded) {
    for (const std::string begin : {"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: ",
                                    "Transfer-Encoding: chunked\r\n\r\n2;"}) {
        RequestReader reader({.head_bytes = 4096, .body_bytes = 4096});
        std::string bytes = std::string(kPost) + begin;
        auto status = read(reader, bytes);
        int pieces = 0;
        for (; status == RequestReader::Status::kMore && pieces < 1000; ++pieces)
            status = read(reader, bytes.append(100, 'a'));
        EXPECT_EQ(status, RequestReader::Status::kRefused);
        EXPECT_LT(pieces, 50);
    }
}

TEST(HostileRequest, ATrailerIsNoHeader) {
    RequestReader reader({.head_bytes = 4096, .body_bytes = 4096});
    std::string bytes =
        std::string(kPost) +
        "X-A: head\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nAuthorization: "
        "stolen\r\nX-A: trailer\r\n\r\n";
    ASSERT_EQ(read(reader, bytes), RequestReader::Status::kWhole);
    auto request = reader.take();
    EXPECT_EQ(request.headers.count("authorization"), 0U);
    EXPECT_EQ(request.headers["x-a"], "head");
    EXPECT_EQ(request.body, "{}");
}

/// Answers everything at once, and keeps connections.
class Prompt final : public net::Service {
public:
    void request(base::Instant, net::ServiceRequest request, net::ServiceActions& out) override {
        out.emplace_back(
            net::ServiceSend{request.id, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"});
        out.emplace_back(net::ServiceClose{request.id, net::CloseKind::kFin, true});
    }
    void client_left(base::Instant, net::ConnectionId, net::ServiceActions&) override {}
    void wake(base::Instant, net::ServiceActions&) override {}
};

class HostileClient : public ::testing::Test {
protected:
    void listen(std::size_t max_connections, base::Duration request_timeout,
                std::size_t memory_limit = net::kMaxHeldBytes) {
        ServerOptions options;
        memory = std::make_unique<net::MemoryBudget>(memory_limit);
        options.memory = memory.get();
        options.max_connections = max_connections;
        options.request_timeout = request_timeout;
        server = std::move(*Server::listen(loop, service, std::move(options)));
    }
    void run(const std::function<void()>& client) {
        std::thread thread([&] {
            client();
            loop.post([&] { loop.stop(); });
        });
        loop.run();
        thread.join();
    }
    static std::string ask(int fd) {
        send_all(fd, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        return receive_until(fd, "ok");
    }
    /// Asked of the loop's thread.
    std::size_t held() {
        std::promise<std::size_t> bytes;
        loop.post([&] { bytes.set_value(memory->held()); });
        return bytes.get_future().get();
    }
    Loop loop;
    Prompt service;
    std::unique_ptr<net::MemoryBudget> memory;
    std::unique_ptr<Server> server;
};

TEST_F(HostileClient, AHeadThatComesByteByByteHasALimit) {
    listen(100, std::chrono::milliseconds(200));
    run([&] {
        const int fd = connect_to(server->port());
        std::string answer;
        for (int i = 0; i < 200 && answer.empty(); ++i) {
            send_all(fd, i == 0 ? "G" : "x");
            char buffer[4096];
            const ssize_t got = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
            if (got > 0) answer.assign(buffer, static_cast<std::size_t>(got));
            ::usleep(10'000);
        }
        EXPECT_THAT(answer, StartsWith("HTTP/1.1 408"));
        ::close(fd);
    });
}

constexpr std::size_t kMiB = 1024 * 1024;

/// A request that never comes whole.
int begin_large(std::uint16_t port, std::size_t bytes) {
    const int fd = connect_to(port);
    send_all(fd, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\n" +
                     std::string(bytes, 'x'));
    return fd;
}

TEST_F(HostileClient, WhoHoldsMuchAndDoesNotMoveGoesAndNewcomersGetIn) {
    listen(100, std::chrono::seconds(20), 16 * kMiB);
    run([&] {
        std::vector<int> holders;
        for (int i = 0; i < 3; ++i) holders.push_back(begin_large(server->port(), 4 * kMiB - 200));
        while (held() < 3 * (4 * kMiB - 200))
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        std::this_thread::sleep_for(net::kIdleHold);
        const int fd = connect_to(server->port());
        send_all(fd, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" +
                         std::string(1'000'000, 'x'));
        EXPECT_THAT(receive_until(fd, "ok"), StartsWith("HTTP/1.1 200"))
            << "though it is large itself";
        EXPECT_THAT(ask(fd), StartsWith("HTTP/1.1 200"));
        const std::string refused = receive_all(holders.back());
        EXPECT_THAT(refused, StartsWith("HTTP/1.1 503"));
        EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
        send_all(holders.front(), std::string(8'000'000 - (4 * kMiB - 200), 'x'));
        EXPECT_THAT(receive_until(holders.front(), "ok"), StartsWith("HTTP/1.1 200"))
            << "and who moves again may finish";
        for (const int each : holders) ::close(each);
        ::close(fd);
    });
    EXPECT_GE(memory->dropped(), 1U);
    EXPECT_LE(memory->held(), 4 * kMiB)
        << "of the one that still waits; what was answered or refused is not counted";
}

TEST_F(HostileClient, ABodyThatWillNotFitIsNotReadAndSmallRequestsStillAre) {
    listen(100, std::chrono::seconds(20), 8 * kMiB);
    net::MemoryBudget::Hold under_way(*memory);
    ASSERT_TRUE(under_way.resize(6 * kMiB, {}));
    run([&] {
        const int fd = begin_large(server->port(), 0);
        EXPECT_THAT(receive_all(fd), StartsWith("HTTP/1.1 503"));
        const int small = connect_to(server->port());
        send_all(small, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n" +
                            std::string(60'000, 'x'));
        EXPECT_THAT(receive_until(small, "ok"), StartsWith("HTTP/1.1 200"));
        const int in_chunks = connect_to(server->port());
        send_all(in_chunks,
                 "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n500000\r\n" +
                     std::string(kMiB, 'x'));
        EXPECT_THAT(receive_all(in_chunks), StartsWith("HTTP/1.1 503"))
            << "nor one that did not say how long it is";
        for (const int each : {fd, small, in_chunks}) ::close(each);
    });
}

TEST_F(HostileClient, WhenEverythingIsHeldAShortRequestIsAnswered) {
    listen(100, std::chrono::seconds(20), 16 * net::kSmallHoldBytes);
    std::vector<net::MemoryBudget::Hold> all;
    for (int i = 0; i < 16; ++i) {
        all.emplace_back(*memory);
        ASSERT_TRUE(all.back().resize(net::kSmallHoldBytes, {}));
    }
    run([&] {
        const int fd = connect_to(server->port());
        EXPECT_THAT(ask(fd), StartsWith("HTTP/1.1 200"));
        ::close(fd);
    });
}

TEST_F(HostileClient, NobodyIsKeptOutByConnectionsThatOnlyWait) {
    listen(20, std::chrono::seconds(20));
    run([&] {
        std::vector<int> waiting;
        for (int i = 0; i < 60; ++i) {
            const int fd = connect_to(server->port());
            if (i % 2 != 0)
                send_all(fd, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf");
            waiting.push_back(fd);
        }
        const int fd = connect_to(server->port());
        EXPECT_THAT(ask(fd), StartsWith("HTTP/1.1 200"));
        EXPECT_THAT(ask(fd), StartsWith("HTTP/1.1 200")) << "and keeps its connection";
        for (const int each : waiting) ::close(each);
        ::close(fd);
    });
    EXPECT_LE(server->connections(), 20U);
}

}  // namespace
}  // namespace fullstop::adapters::asio
