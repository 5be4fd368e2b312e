// Clients that mean harm: requests that two readers understand differently, heads that never end, connections that only wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "adapters/asio/request_reader.h"
#include "adapters/asio/server.h"
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
        {"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 200},  // the same said twice is allowed (RFC 9110 8.6)
        {"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n", 200},
        {"Transfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200},
    };
    for (const auto& each : cases) EXPECT_EQ(status_of(std::string(kPost) + each.rest), each.status) << each.rest.substr(0, 200);
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
                if (status == RequestReader::Status::kMore) status = read(reader, bytes.append(request, first, second - first));
                if (status == RequestReader::Status::kMore) status = read(reader, bytes.append(request, second));
                const int got = status == RequestReader::Status::kRefused ? reader.refusal_status() : status == RequestReader::Status::kWhole ? 200 : 100;
                ASSERT_EQ(got, each.status) << each.rest << " cut at " << first << " and " << second;
            }
    }
}

TEST(HostileRequest, AnEndlessTrailerOrChunkHeadIsBounded) {
    for (const std::string begin : {"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: ", "Transfer-Encoding: chunked\r\n\r\n2;"}) {
        RequestReader reader({.head_bytes = 4096, .body_bytes = 4096});
        std::string bytes = std::string(kPost) + begin;
        auto status = read(reader, bytes);
        int pieces = 0;
        for (; status == RequestReader::Status::kMore && pieces < 1000; ++pieces) status = read(reader, bytes.append(100, 'a'));
        EXPECT_EQ(status, RequestReader::Status::kRefused);
        EXPECT_LT(pieces, 50);
    }
}

TEST(HostileRequest, ATrailerIsNoHeader) {
    RequestReader reader({.head_bytes = 4096, .body_bytes = 4096});
    std::string bytes = std::string(kPost) + "X-A: head\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nAuthorization: stolen\r\nX-A: trailer\r\n\r\n";
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
        out.emplace_back(net::ServiceSend{request.id, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"});
        out.emplace_back(net::ServiceClose{request.id, net::CloseKind::kFin, true});
    }
    void client_left(base::Instant, net::ConnectionId, net::ServiceActions&) override {}
    void wake(base::Instant, net::ServiceActions&) override {}
};

class HostileClient : public ::testing::Test {
protected:
    void listen(std::size_t max_connections, base::Duration request_timeout, std::size_t max_unfinished_bytes = kMaxUnfinishedRequestBytes) {
        ServerOptions options;
        options.max_unfinished_bytes = max_unfinished_bytes;
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
    Loop loop;
    Prompt service;
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

TEST_F(HostileClient, UnfinishedRequestsTogetherHaveALimit) {
    listen(100, std::chrono::seconds(20), 150'000);
    run([&] {
        const std::string half = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 70000\r\n\r\n" + std::string(60'000, 'x');
        std::vector<int> clients;
        for (int i = 0; i < 3; ++i) {
            clients.push_back(connect_to(server->port()));
            send_all(clients.back(), half);
            ::usleep(20'000);
        }
        EXPECT_THAT(receive_until(clients[2], "}}"), StartsWith("HTTP/1.1 503"));
        send_all(clients[0], std::string(10'000, 'x'));
        EXPECT_THAT(receive_until(clients[0], "ok"), StartsWith("HTTP/1.1 200")) << "who came before may finish";
        const int fd = connect_to(server->port());
        EXPECT_THAT(ask(fd), StartsWith("HTTP/1.1 200")) << "what was taken or refused is not counted";
        for (const int each : clients) ::close(each);
        ::close(fd);
    });
}

TEST_F(HostileClient, NobodyIsKeptOutByConnectionsThatOnlyWait) {
    listen(20, std::chrono::seconds(20));
    run([&] {
        std::vector<int> waiting;
        for (int i = 0; i < 60; ++i) {
            const int fd = connect_to(server->port());
            if (i % 2 != 0) send_all(fd, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf");
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
