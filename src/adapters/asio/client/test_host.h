// For tests: parts on a client host, and one exchange with a peer.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "adapters/asio/client/host.h"
#include "adapters/asio/test_peer.h"

namespace fullstop::adapters::asio {

inline constexpr base::Duration kLong = std::chrono::seconds(20);

inline net::Connect plain(net::ConnectionId id, std::uint16_t port, std::string host = "127.0.0.1",
                          base::Duration timeout = kLong) {
    return {.id = id,
            .endpoint = {.host = std::move(host), .port = port, .tls = false},
            .timeout = timeout};
}

class HostTest : public ::testing::Test {
protected:
    std::unique_ptr<Host> host(HostOptions options = {}) {
        auto made = Host::create(loop, std::move(options));
        EXPECT_TRUE(made.has_value());
        return std::move(*made);
    }
    /// One connection that sends `request` at once and waits for its end.
    Script::Seen exchange(const net::Connect& connect, const std::string& request = "hello\n") {
        Script script;
        script.on_start = [&](base::Instant, net::Actions& out) {
            out.push_back(connect);
            out.push_back(net::Send{connect.id, request});
        };
        auto running = host();
        running->add(script);
        EXPECT_EQ(running->run_until_done(), HostEnd::kDone);
        return script.seen[connect.id];
    }
    Loop loop;
};

}  // namespace fullstop::adapters::asio
