// For tests only: a gateway between a client and an upstream that exist as bytes alone. One request
// goes through; the upstream's bytes come in any cut, then its end; what the client received is
// kept and read by a reader of its own.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "gateway/gateway.h"
#include "wire/answer_reader.h"
#include "wire/http/http_framing.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {

inline const std::string kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
inline const std::string kPiece = wire::chunk(
    wire::sse_event(R"({"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]})"));

/// What a client sees of one exchange.
struct Seen {
    std::string raw;
    bool closed = false, kept = false, reset = false;
    std::string body() const {  ///< without its framing
        wire::HttpFraming framing;
        std::string_view rest = raw;
        std::string out;
        while (!rest.empty() && !framing.complete()) out += framing.next(rest);
        return out;
    }
    std::string head() const { return raw.substr(0, raw.find("\r\n\r\n") + 4); }
    /// As the probe would record it.
    answer::Record record() const {
        answer::Record out;
        wire::AnswerReader reader(out);
        reader.bytes(raw, base::from_ms(1), answer::StampClock::kUserSpace);
        reader.end({reset ? wire::StreamEnd::Kind::kRst : wire::StreamEnd::Kind::kFin},
                   base::from_ms(2));
        return out;
    }
};

class Bench {
public:
    explicit Bench(GatewayOptions options = default_options()) : gateway(std::move(options)) {}

    static GatewayOptions default_options() {
        GatewayOptions options{.policy = {}, .version = "test"};
        options.policy.upstreams = {{.url = *wire::parse_server_url("http://127.0.0.1:9000")}};
        options.policy.deadlines.idle = std::chrono::seconds(30);
        options.policy.drain = std::chrono::seconds(5);
        return options;
    }

    net::ServiceRequest post(const std::string& target, std::string body = "{}") {
        return {.id = ++last_id,
                .method = "POST",
                .target = target,
                .headers = {{"host", "gateway"}, {"content-type", "application/json"}},
                .body = std::move(body)};
    }
    net::ServiceRequest get(const std::string& target) {
        return {.id = ++last_id,
                .method = "GET",
                .target = target,
                .headers = {{"host", "gateway"}},
                .body = {}};
    }

    void request(const net::ServiceRequest& request) {
        Actions out;
        gateway.request(now, request, out);
        take(out);
    }
    std::string metrics() {
        seen = {};
        request(get("/metrics"));
        return seen.body();
    }
    void leave() {
        Actions out;
        gateway.client_left(now, last_id, out);
        take(out);
    }
    void lag(bool lags) {
        Actions out;
        gateway.client_lags(now, last_id, lags, out);
        take(out);
    }
    void tell(decltype(net::Event::what) what) {
        Actions out;
        gateway.upstream({now, std::move(what)}, out);
        take(out);
    }
    void connected() { tell(net::Connected{connection}); }
    void fail_to_connect(net::ConnectFailure why, const char* text) {
        tell(net::ConnectFailed{connection, why, text});
    }
    void receive(std::string_view bytes) {
        now += std::chrono::milliseconds(1);
        if (!seen.closed) tell(net::Received{connection, bytes, answer::StampClock::kUserSpace});
    }
    void close(net::CloseKind kind) {
        now += std::chrono::milliseconds(1);
        if (!seen.closed)
            tell(net::PeerClosed{connection, kind,
                                 kind == net::CloseKind::kRst ? "Connection reset by peer" : ""});
    }
    /// Nothing more comes: time passes until the timer that was set fires, as often as it is set
    /// again.
    void silence() {
        for (int i = 0; i < 3 && !seen.closed; ++i) {
            ASSERT_TRUE(timer) << "no limit is watched";
            now = std::max(now, *timer);
            tell(net::TimerFired{last_id});
        }
    }

    Gateway gateway;
    base::Instant now{std::chrono::seconds(100)};
    net::ConnectionId last_id = 0;
    Seen seen;
    std::string sent;                  ///< to the upstream
    net::ConnectionId connection = 0;  ///< of the last attempt
    int connects = 0;
    bool upstream_closed = false, upstream_read = true;
    std::optional<base::Instant> timer;

private:
    void take(const Actions& actions) {
        for (const auto& action : actions.client) {
            if (const auto* send = std::get_if<net::ServiceSend>(&action)) {
                EXPECT_FALSE(seen.closed) << "bytes after the close";
                seen.raw += send->bytes;
            } else if (const auto* end = std::get_if<net::ServiceClose>(&action)) {
                EXPECT_FALSE(seen.closed) << "closed twice";
                seen.closed = true;
                seen.kept = end->keep_alive;
                seen.reset = end->kind == net::CloseKind::kRst;
            }
        }
        for (const auto& action : actions.upstream) {
            if (const auto* connect = std::get_if<net::Connect>(&action))
                ++connects, connection = connect->id;
            if (const auto* send = std::get_if<net::Send>(&action))
                sent += send->bytes + (send->more ? *send->more : "");
            if (std::get_if<net::Close>(&action) != nullptr) upstream_closed = true;
            if (const auto* flow = std::get_if<net::Flow>(&action)) upstream_read = flow->on;
            if (const auto* set = std::get_if<net::SetTimer>(&action);
                set != nullptr && set->id == last_id)
                timer = set->at;
            if (const auto* cancel = std::get_if<net::CancelTimer>(&action);
                cancel != nullptr && cancel->id == last_id)
                timer.reset();
        }
    }
};

}  // namespace fullstop::gateway
