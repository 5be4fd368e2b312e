// A gateway between scripted clients and scripted upstreams, in a time that is only counted. What
// each side gets is held to what it may get; at the end everything that was set aside must have
// come back.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client_side.h"
#include "gateway/gateway.h"

namespace fullstop::fuzz {

/// "upstreams=3 continuation heartbeat output ...": see the words in gateway_world.cc.
gateway::Policy policy_of(std::string_view words);

class GatewayWorld {
public:
    explicit GatewayWorld(std::string_view policy);

    ClientSide& clients() { return clients_; }
    void configure(std::string_view policy);
    void drain();
    void leaves(std::size_t client);
    void lags(std::size_t client, bool on);
    /// What the upstream of a client's attempt does; nothing happens when there is none.
    void connects(std::size_t client);
    void refuses(std::size_t client);
    void says(std::size_t client, std::string bytes);
    void closes(std::size_t client, net::CloseKind kind);
    /// What it was sent last there.
    std::string sent_to(std::size_t client) const;
    void learned(std::size_t upstream, std::string_view words);
    void loaded(std::size_t upstream, std::string_view words);
    void store_answers(gateway::StoreAnswer::What what);
    void pass(base::Duration time);
    void end();

private:
    /// One connection to an upstream.
    struct Attempt {
        net::ConnectionId request = 0;
        bool connected = false, open = true;
        std::string sent = {};
    };
    template <class Call>
    void act(const char* what, const Call& call);
    void tell(decltype(net::Event::what) what, const char* name);
    void take(const net::Actions& actions);
    void take_store(const std::vector<gateway::StoreAsk>& asks);
    net::ConnectionId attempt_of(std::size_t client) const;
    void look_at_sent(const std::string& bytes) const;
    void look_at(const Asked& asked, const Response& response, const net::ServiceClose& close);
    void look_at_refusal(const Response& response) const;

    base::Instant now_{std::chrono::seconds(100)};
    gateway::Gateway gateway_;
    ClientSide clients_;
    std::map<net::ConnectionId, Attempt> attempts_;
    std::map<net::TimerId, base::Instant> timers_;
    std::map<std::uint64_t, bool> reserved_;  ///< asked of the store, and whether it has answered
    std::set<std::uint64_t> settled_;
    bool limits_output_, windows_known_ = false;
};

}  // namespace fullstop::fuzz
