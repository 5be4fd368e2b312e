// Engine, HTTP service and server on two threads: the loop's for sockets, a worker's for the
// model's steps. Commands collect while a step runs; events of the step before are written while
// the next one computes.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "adapters/asio/loop.h"
#include "adapters/asio/server/server.h"
#include "adapters/asio/worker.h"
#include "base/result.h"
#include "engine/http/http_service.h"

namespace fullstop::running {

class Serving {
public:
    struct Options {
        adapters::asio::ServerOptions server;
        engine::ServiceOptions service;
        engine::EngineOptions engine;
    };
    static base::Result<std::unique_ptr<Serving>> start(adapters::asio::Loop& loop,
                                                        std::unique_ptr<engine::Backend> backend,
                                                        Options options);

    std::uint16_t port() const { return server_->port(); }
    const engine::ModelFacts& facts() const { return backend_->facts(); }
    /// No new answers; when the last one has ended (or the drain limit ended it) the loop stops.
    void drain();

private:
    Serving(adapters::asio::Loop& loop, std::unique_ptr<engine::Backend> backend,
            const Options& options);

    /// What one step brings back from the worker's thread.
    struct Outcome {
        engine::EngineEvents events;
        engine::Occupancy occupancy;
        bool more = false;
    };

    void send(engine::Command command);
    void next_step();
    Outcome step(std::vector<engine::Command> commands);
    void deliver(const Outcome& outcome);
    void stop_when_drained();

    adapters::asio::Loop& loop_;
    std::unique_ptr<engine::Backend> backend_;
    engine::Engine engine_;  ///< worker's thread only, once a step was handed over
    engine::HttpService service_;
    std::unique_ptr<adapters::asio::Server> server_;
    std::vector<engine::Command> commands_;
    bool stepping_ = false, draining_ = false, drained_ = false;
    adapters::asio::Worker worker_;  ///< last: its destructor waits for the running step
};

}  // namespace fullstop::running
