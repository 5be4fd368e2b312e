// What the gateway decides goes to both sides and to the store; each does it in its own turn.
#include "running/relaying.h"

#include <iterator>
#include <utility>

namespace fullstop::running {

Relaying::Relaying(adapters::asio::Loop& loop, gateway::GatewayOptions options)
    : loop_(loop), gateway_((options.memory = &memory_, std::move(options))) {}

base::Result<std::unique_ptr<Relaying>> Relaying::start(adapters::asio::Loop& loop,
                                                        Options options) {
    std::unique_ptr<Relaying> made(new Relaying(loop, std::move(options.gateway)));
    // Kernel stamps cost system calls, and a relay measures nothing so fine.
    auto host = adapters::asio::Host::create(
        loop, {.verify_tls = true, .ca_file = {}, .kernel_stamps = false, .signals = false});
    if (!host) return std::unexpected(host.error());
    made->host_ = std::move(*host);
    made->host_->add(*made);
    made->watch_upstreams();
    made->sharing_ = std::make_unique<Sharing>(
        loop, *made->host_, [relaying = made.get()](const auto& state, const auto& answers) {
            relaying->store_says(state, answers);
        });
    made->sharing_->configure(made->gateway_.policy().budgets.shared);
    options.server.memory = &made->memory_;
    auto server = adapters::asio::Server::listen(loop, *made, std::move(options.server));
    if (!server) return std::unexpected(server.error());
    made->server_ = std::move(*server);
    return made;
}

/// One call of the gateway, and what it decided on its way. What an exchange throws has ended that
/// exchange; whatever is left would end the process with all of them.
template <class Decide>
void Relaying::decide(const Decide& decide) {
    gateway::Actions actions;
    try {
        decide(actions);
    } catch (const std::exception& thrown) {
        gateway_.stray_fault(thrown.what());
    }
    for (const gateway::StoreAsk& ask : actions.store) sharing_->ask(loop_.clock().now(), ask);
    if (!actions.client.empty()) server_->act(std::move(actions.client));
    if (!actions.upstream.empty()) host_->act(*this, std::move(actions.upstream));
    stop_when_drained();
}

bool Relaying::head(base::Instant now, const net::ServiceRequest& request, net::ServiceActions&) {
    bool wanted = true;
    decide([&](gateway::Actions& out) { wanted = gateway_.head(now, request, out); });
    return wanted;
}

void Relaying::request(base::Instant now, net::ServiceRequest request, net::ServiceActions&) {
    decide([&](gateway::Actions& out) { gateway_.request(now, std::move(request), out); });
}

void Relaying::client_left(base::Instant now, net::ConnectionId id, net::ServiceActions&) {
    decide([&](gateway::Actions& out) { gateway_.client_left(now, id, out); });
}

void Relaying::client_lags(base::Instant now, net::ConnectionId id, bool lags,
                           net::ServiceActions&) {
    decide([&](gateway::Actions& out) { gateway_.client_lags(now, id, lags, out); });
}

void Relaying::on(const net::Event& event, net::Actions&) {
    decide([&](gateway::Actions& out) { gateway_.pass_on(event, out); });
}

void Relaying::read_on(const net::Event& event, net::Actions&) {
    decide([&](gateway::Actions& out) { gateway_.read_on(event, out); });
}

void Relaying::store_says(const gateway::StoreState& state,
                          const std::vector<gateway::StoreAnswer>& answers) {
    gateway_.store_is(state);
    for (const gateway::StoreAnswer& answer : answers)
        decide([&](gateway::Actions& out) { gateway_.answered(answer, loop_.clock().now(), out); });
    stop_when_drained();
}

void Relaying::configure(gateway::Policy policy) {
    decide([&](gateway::Actions& out) {
        gateway_.configure(std::move(policy), loop_.clock().now(), out);
    });
    sharing_->configure(gateway_.policy().budgets.shared);
    watch_upstreams();
}

void Relaying::drain() {
    decide([&](gateway::Actions& out) { gateway_.drain(loop_.clock().now(), out); });
}

/// A watch for each upstream that wants one, and none for the others.
void Relaying::watch_upstreams() {
    const auto& all = gateway_.upstreams().all();
    const auto wanted = [&](gateway::UpstreamId id) {
        const auto found = all.find(id);
        return found != all.end() && found->second->options().learn && !found->second->retired();
    };
    const auto same_key = [&](const auto& watch) {
        return all.at(watch.first)->options().api_key == watch.second->api_key();
    };
    for (auto at = watching_.begin(); at != watching_.end();) {
        if (wanted(at->first) && same_key(*at)) {
            ++at;
            continue;
        }
        at->second->stop();
        stopped_.push_back(std::move(at->second));
        at = watching_.erase(at);
    }
    for (const auto& [id, upstream] : all)
        if (wanted(id) && !watching_.contains(id)) watch(id, upstream->options());
}

void Relaying::watch(gateway::UpstreamId id, const gateway::UpstreamOptions& upstream) {
    Watching::Calls calls;
    calls.learned = [this, id](gateway::Capacity capacity) {
        decide([&](gateway::Actions& out) {
            gateway_.learned(id, std::move(capacity), loop_.clock().now(), out);
        });
    };
    calls.loaded = [this, id](const gateway::Load& load) {
        decide([&](gateway::Actions& out) { gateway_.loaded(id, load, loop_.clock().now(), out); });
    };
    auto& added = watching_[id] =
        std::make_unique<Watching>(upstream.url, upstream.api_key, std::move(calls));
    host_->add(*added, adapters::asio::Host::Wait::kCompanion);
}

void Relaying::stop_when_drained() {
    // A store that answers hears of the last ends too.
    if (!gateway_.drained() || !sharing_->idle() || std::exchange(drained_, true)) return;
    // In a turn of its own: the last answer's bytes are still being handed over.
    loop_.post([this] { server_->drain([this] { loop_.stop(); }); });
}

}  // namespace fullstop::running
