// The worker has at most one step at a time; everything else happens on the loop's thread.
#include "running/serving.h"

#include <utility>

namespace fullstop::running {

Serving::Serving(adapters::asio::Loop& loop, std::unique_ptr<engine::Backend> backend,
                 const Options& options)
    : loop_(loop),
      backend_(std::move(backend)),
      engine_(*backend_, options.engine),
      service_(backend_->facts(), options.service,
               [this](engine::Command command) { send(std::move(command)); }),
      worker_(loop) {}

base::Result<std::unique_ptr<Serving>> Serving::start(adapters::asio::Loop& loop,
                                                      std::unique_ptr<engine::Backend> backend,
                                                      Options options) {
    std::unique_ptr<Serving> serving(new Serving(loop, std::move(backend), options));
    auto server =
        adapters::asio::Server::listen(loop, serving->service_, std::move(options.server));
    if (!server) return std::unexpected(server.error());
    serving->server_ = std::move(*server);
    return serving;
}

void Serving::send(engine::Command command) {
    commands_.push_back(std::move(command));
    if (!stepping_) next_step();
}

void Serving::next_step() {
    stepping_ = true;
    auto outcome = std::make_shared<Outcome>();
    worker_.run(
        [this, outcome, commands = std::exchange(commands_, {})]() mutable {
            *outcome = step(std::move(commands));
        },
        [this, outcome] {
            stepping_ = false;
            if (outcome->more || !commands_.empty()) next_step();
            deliver(*outcome);
        });
}

/// On the worker's thread.
Serving::Outcome Serving::step(std::vector<engine::Command> commands) {
    Outcome outcome;
    const base::Clock& clock = loop_.clock();
    for (engine::Command& command : commands)
        engine::apply(engine_, clock.now(), std::move(command), outcome.events);
    if (engine_.plan(clock.now(), outcome.events)) {
        engine_.compute();
        engine_.commit(clock.now(), outcome.events);
    }
    outcome.occupancy = engine_.occupancy();
    outcome.more = !engine_.idle();
    return outcome;
}

void Serving::deliver(const Outcome& outcome) {
    net::ServiceActions out;
    service_.deliver(outcome.events, outcome.occupancy, out);
    server_->act(std::move(out));
    stop_when_drained();
}

void Serving::drain() {
    if (std::exchange(draining_, true)) return;
    net::ServiceActions out;
    service_.drain(loop_.clock().now(), out);
    server_->act(std::move(out));
    stop_when_drained();
}

void Serving::stop_when_drained() {
    if (!draining_ || service_.open_answers() > 0 || std::exchange(drained_, true)) return;
    server_->drain([this] { loop_.stop(); });
}

}  // namespace fullstop::running
