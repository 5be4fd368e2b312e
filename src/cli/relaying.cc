// Actions of one decision go to both sides; whichever side is not being called at the moment is called for it.
#include "cli/relaying.h"

#include <iterator>
#include <utility>

namespace fullstop::cli {
namespace {

template <class Actions>
void append(Actions& to, Actions from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

base::Result<std::unique_ptr<Relaying>> Relaying::start(adapters::asio::Loop& loop, Options options) {
    std::unique_ptr<Relaying> made(new Relaying(loop, std::move(options.gateway)));
    // Kernel stamps cost system calls, and a relay measures nothing so fine.
    auto host = adapters::asio::Host::create(loop, {.verify_tls = true, .ca_file = {}, .kernel_stamps = false, .signals = false});
    if (!host) return std::unexpected(host.error());
    made->host_ = std::move(*host);
    made->host_->add(*made);
    auto server = adapters::asio::Server::listen(loop, *made, std::move(options.server));
    if (!server) return std::unexpected(server.error());
    made->server_ = std::move(*server);
    return made;
}

void Relaying::for_client(const std::function<void(gateway::Actions&)>& decide, net::ServiceActions& out) {
    gateway::Actions actions;
    decide(actions);
    client_call_ = &out;
    carry_out(std::move(actions));
    client_call_ = nullptr;
    stop_when_drained();
}

void Relaying::request(base::Instant now, net::ServiceRequest request, net::ServiceActions& out) {
    for_client([&](gateway::Actions& actions) { gateway_.request(now, request, actions); }, out);
}

void Relaying::client_left(base::Instant now, net::ConnectionId id, net::ServiceActions& out) {
    for_client([&](gateway::Actions& actions) { gateway_.client_left(now, id, actions); }, out);
}

void Relaying::client_lags(base::Instant now, net::ConnectionId id, bool lags, net::ServiceActions& out) {
    for_client([&](gateway::Actions& actions) { gateway_.client_lags(now, id, lags, actions); }, out);
}

void Relaying::on(const net::Event& event, net::Actions& out) {
    gateway::Actions actions;
    gateway_.upstream(event, actions);
    upstream_call_ = &out;
    carry_out(std::move(actions));
    upstream_call_ = nullptr;
    stop_when_drained();
}

void Relaying::carry_out(gateway::Actions actions) {
    if (!actions.client.empty()) {
        if (client_call_ != nullptr)
            append(*client_call_, std::move(actions.client));
        else
            server_->act([&](base::Instant, net::ServiceActions& out) { append(out, std::move(actions.client)); });
    }
    if (actions.upstream.empty()) return;
    if (upstream_call_ != nullptr)
        append(*upstream_call_, std::move(actions.upstream));
    else
        host_->act(*this, [&](base::Instant, net::Actions& out) { append(out, std::move(actions.upstream)); });
}

void Relaying::drain() {
    gateway::Actions actions;
    gateway_.drain(loop_.clock().now(), actions);
    carry_out(std::move(actions));
    stop_when_drained();
}

void Relaying::stop_when_drained() {
    if (!gateway_.drained() || std::exchange(drained_, true)) return;
    // In a turn of its own: the last answer's bytes are still being handed over.
    loop_.post([this] { server_->drain([this] { loop_.stop(); }); });
}

}  // namespace fullstop::cli
