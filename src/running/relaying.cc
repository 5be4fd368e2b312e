// Actions of one decision go to both sides; whichever side is not being called at the moment is
// called for it.
#include "running/relaying.h"

#include <iterator>
#include <utility>

namespace fullstop::running {
namespace {

template <class Actions>
void append(Actions& to, Actions from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

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
    made->sharing_ = std::make_unique<Sharing>(*made->host_, [relaying = made.get()] {
        relaying->hear_store();
        relaying->stop_when_drained();
    });
    made->sharing_->configure(made->gateway_.policy().budgets.shared);
    options.server.memory = &made->memory_;
    auto server = adapters::asio::Server::listen(loop, *made, std::move(options.server));
    if (!server) return std::unexpected(server.error());
    made->server_ = std::move(*server);
    return made;
}

/// What an exchange throws has ended that exchange. Whatever is left would end the process with all
/// of them.
gateway::Actions Relaying::decided(const std::function<void(gateway::Actions&)>& decide) {
    gateway::Actions actions;
    try {
        decide(actions);
    } catch (const std::exception& thrown) {
        gateway_.stray_fault(thrown.what());
    }
    return actions;
}

void Relaying::for_client(const std::function<void(gateway::Actions&)>& decide,
                          net::ServiceActions& out) {
    gateway::Actions actions = decided(decide);
    client_call_ = &out;
    carry_out(std::move(actions));
    hear_store();
    client_call_ = nullptr;
    stop_when_drained();
}

bool Relaying::head(base::Instant now, const net::ServiceRequest& request,
                    net::ServiceActions& out) {
    bool wanted = true;
    for_client([&](gateway::Actions& actions) { wanted = gateway_.head(now, request, actions); },
               out);
    return wanted;
}

void Relaying::request(base::Instant now, net::ServiceRequest request, net::ServiceActions& out) {
    for_client(
        [&](gateway::Actions& actions) { gateway_.request(now, std::move(request), actions); },
        out);
}

void Relaying::client_left(base::Instant now, net::ConnectionId id, net::ServiceActions& out) {
    for_client([&](gateway::Actions& actions) { gateway_.client_left(now, id, actions); }, out);
}

void Relaying::client_lags(base::Instant now, net::ConnectionId id, bool lags,
                           net::ServiceActions& out) {
    for_client([&](gateway::Actions& actions) { gateway_.client_lags(now, id, lags, actions); },
               out);
}

void Relaying::on(const net::Event& event, net::Actions& out) {
    upstream_call_ = &out;
    carry_out(decided([&](gateway::Actions& actions) { gateway_.pass_on(event, actions); }));
    carry_out(decided([&](gateway::Actions& actions) { gateway_.read_on(event, actions); }));
    hear_store();
    upstream_call_ = nullptr;
    stop_when_drained();
}

/// Only between two calls of the gateway, never inside one.
void Relaying::hear_store() {
    gateway_.store_is(sharing_->state());
    for (auto answers = sharing_->take_answers(); !answers.empty();
         answers = sharing_->take_answers()) {
        for (const gateway::StoreAnswer& answer : answers)
            carry_out(decided([&](gateway::Actions& actions) {
                gateway_.answered(answer, loop_.clock().now(), actions);
            }));
    }
}

void Relaying::carry_out(gateway::Actions actions) {
    for (const gateway::StoreAsk& ask : actions.store) sharing_->ask(loop_.clock().now(), ask);
    if (!actions.client.empty()) {
        if (client_call_ != nullptr)
            append(*client_call_, std::move(actions.client));
        else
            server_->act([&](base::Instant, net::ServiceActions& out) {
                append(out, std::move(actions.client));
            });
    }
    if (actions.upstream.empty()) return;
    if (upstream_call_ != nullptr)
        append(*upstream_call_, std::move(actions.upstream));
    else
        host_->act(*this, [&](base::Instant, net::Actions& out) {
            append(out, std::move(actions.upstream));
        });
}

void Relaying::for_itself(const std::function<void(base::Instant, gateway::Actions&)>& decide) {
    carry_out(decided([&](gateway::Actions& actions) { decide(loop_.clock().now(), actions); }));
    hear_store();
    stop_when_drained();
}

void Relaying::configure(gateway::Policy policy) {
    for_itself([&](base::Instant now, gateway::Actions& out) {
        gateway_.configure(std::move(policy), now, out);
    });
    sharing_->configure(gateway_.policy().budgets.shared);
    hear_store();
    watch_upstreams();
}

void Relaying::drain() {
    for_itself([&](base::Instant now, gateway::Actions& out) { gateway_.drain(now, out); });
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
    Watching::Calls calls{.learned =
                              [this, id](gateway::Capacity capacity) {
                                  for_itself([&](base::Instant now, gateway::Actions& out) {
                                      gateway_.learned(id, std::move(capacity), now, out);
                                  });
                              },
                          .loaded =
                              [this, id](const gateway::Load& load) {
                                  for_itself([&](base::Instant now, gateway::Actions& out) {
                                      gateway_.loaded(id, load, now, out);
                                  });
                              }};
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
