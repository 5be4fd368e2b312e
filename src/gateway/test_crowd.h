// For tests only: a gateway with several upstreams and clients in virtual time. Connections and
// timers are kept by name; what each client received is kept apart.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "gateway/gateway.h"
#include "gateway/test_upstream.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {

class Crowd {
public:
    explicit Crowd(Policy policy)
        : Crowd(GatewayOptions{.policy = std::move(policy), .version = "test"}) {}
    explicit Crowd(GatewayOptions options) : gateway(with_records(std::move(options))) {}

    static Policy policy_of(int upstreams, std::optional<std::int64_t> each = {}) {
        Policy policy;
        for (int i = 1; i <= upstreams; ++i)
            policy.upstreams.push_back(
                {.url = *wire::parse_server_url("http://127.0.0.1:" + std::to_string(9000 + i)),
                 .max_concurrency = each});
        return policy;
    }

    struct Client {
        Seen seen;
        net::ConnectionId connection = 0;  ///< to an upstream, of its last attempt
        int upstream = 0;                  ///< port - 9000; 0: none yet
        int attempts = 0;
        std::string sent;
    };

    net::ConnectionId ask(const std::string& body = R"({"stream":true,"max_tokens":10})",
                          const std::string& key = "",
                          const std::string& target = "/v1/chat/completions") {
        const net::ConnectionId id = ++last_;
        net::ServiceRequest request{.id = id,
                                    .method = "POST",
                                    .target = target,
                                    .headers = {{"host", "gateway"}},
                                    .body = body};
        if (!key.empty()) request.headers["authorization"] = key;
        Actions out;
        gateway.request(now, std::move(request), out);
        take(out);
        return id;
    }
    Client& operator[](net::ConnectionId id) { return clients_[id]; }
    bool passed_on(net::ConnectionId id) { return clients_[id].connection != 0; }
    bool over(net::ConnectionId id) { return clients_[id].seen.closed; }

    void leave(net::ConnectionId id) {
        Actions out;
        gateway.client_left(now, id, out);
        take(out);
    }
    void connect(net::ConnectionId id) { tell(net::Connected{clients_[id].connection}); }
    void refuse_connection(net::ConnectionId id) {
        tell(net::ConnectFailed{clients_[id].connection, net::ConnectFailure::kRefused,
                                "Connection refused"});
    }
    void close(net::ConnectionId id) {
        tell(net::PeerClosed{clients_[id].connection, net::CloseKind::kFin, ""});
    }
    void fail(net::ConnectionId id) {
        tell(net::PeerClosed{clients_[id].connection, net::CloseKind::kRst,
                             "Connection reset by peer"});
    }
    void receive(net::ConnectionId id, const std::string& bytes) {
        tell(net::Received{clients_[id].connection, bytes, answer::StampClock::kUserSpace});
    }

    static std::string stream_head() { return kStreamHead; }
    static std::string piece(const std::string& word = "hi") {
        return wire::chunk(wire::sse_event(R"({"choices":[{"index":0,"delta":{"content":")" + word +
                                           R"("},"finish_reason":null}]})"));
    }
    static std::string ending(const std::string& reason = "stop", const std::string& usage = "") {
        return wire::chunk(
                   wire::sse_event(R"({"choices":[{"index":0,"delta":{},"finish_reason":")" +
                                   reason + "\"}]" + usage + "}")) +
               wire::chunk(wire::sse_event("[DONE]")) + wire::last_chunk();
    }
    /// A whole answer from here on.
    void answer(net::ConnectionId id, const std::string& reason = "stop",
                const std::string& usage = "") {
        connect(id);
        receive(id, stream_head() + piece() + ending(reason, usage));
    }

    /// Time passes, and every timer fires when it is due.
    void pass(base::Duration time) {
        const base::Instant until = now + time;
        while (true) {
            const auto next =
                std::ranges::min_element(timers_, {}, [](const auto& each) { return each.second; });
            if (next == timers_.end() || next->second > until) break;
            now = std::max(now, next->second);
            const net::TimerId id = next->first;
            timers_.erase(next);
            tell(net::TimerFired{id});
        }
        now = until;
    }
    void act(const std::function<void(Actions&)>& decide) {
        Actions out;
        decide(out);
        take(out);
    }
    std::string page(const std::string& target) {
        const net::ConnectionId id = ++last_;
        act([&](Actions& out) {
            gateway.request(
                now, {.id = id, .method = "GET", .target = target, .headers = {}, .body = {}}, out);
        });
        return clients_[id].seen.body();
    }
    std::size_t timers() const { return timers_.size(); }

    std::vector<net::ConnectionId> closed;  ///< connections to upstreams
    std::vector<answer::Record> records;    ///< of ended answers
    std::vector<StoreAsk> asked;            ///< of the store of shared budgets
    base::Instant now{std::chrono::seconds(100)};
    Gateway gateway;

private:
    GatewayOptions with_records(GatewayOptions options) {
        options.started = now;
        options.ended = [this](const answer::Record& record) { records.push_back(record); };
        return options;
    }
    void tell(decltype(net::Event::what) what) {
        act([&](Actions& out) { gateway.upstream({now, std::move(what)}, out); });
    }
    void take(const Actions& actions) {
        for (const auto& action : actions.client) {
            if (const auto* send = std::get_if<net::ServiceSend>(&action)) {
                Client& client = clients_[send->id];
                EXPECT_FALSE(client.seen.closed) << "bytes after the close";
                client.seen.raw += send->bytes;
            } else if (const auto* end = std::get_if<net::ServiceClose>(&action)) {
                Client& client = clients_[end->id];
                EXPECT_FALSE(client.seen.closed) << "closed twice";
                client.seen.closed = true;
                client.seen.kept = end->keep_alive;
                client.seen.reset = end->kind == net::CloseKind::kRst;
            }
        }
        for (const auto& action : actions.upstream) {
            if (const auto* connect = std::get_if<net::Connect>(&action)) {
                waiting_connects_.push_back(*connect);
            } else if (const auto* send = std::get_if<net::Send>(&action)) {
                clients_[owner_.at(send->id)].sent = send->bytes + (send->more ? *send->more : "");
            } else if (const auto* close = std::get_if<net::Close>(&action)) {
                closed.push_back(close->id);
            } else if (const auto* set = std::get_if<net::SetTimer>(&action)) {
                timers_[set->id] = set->at;
            } else if (const auto* cancel = std::get_if<net::CancelTimer>(&action)) {
                timers_.erase(cancel->id);
            }
        }
        asked.insert(asked.end(), actions.store.begin(), actions.store.end());
        own_connects();
    }
    /// A Connect names no request: the one that newly has this connection is asked of the gateway.
    void own_connects() {
        for (const net::Connect& connect : waiting_connects_) {
            const net::ConnectionId id = gateway.request_of(connect.id);
            if (id == 0) continue;  // over already
            owner_[connect.id] = id;
            Client& client = clients_[id];
            client.connection = connect.id;
            client.upstream = connect.endpoint.port - 9000;
            ++client.attempts;
        }
        waiting_connects_.clear();
    }

    std::map<net::ConnectionId, Client> clients_;
    std::map<net::ConnectionId, net::ConnectionId> owner_;
    std::vector<net::Connect> waiting_connects_;
    std::map<net::TimerId, base::Instant> timers_;
    net::ConnectionId last_ = 0;
};

}  // namespace fullstop::gateway
