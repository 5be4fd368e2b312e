// Engine and HTTP service on one thread and a counted clock, for tests that look at what a client
// sees.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/http/http_service.h"
#include "engine/test_backend.h"
#include "wire/answer_reader.h"

namespace fullstop::engine {

/// Service and engine as the host joins them, on one thread and a counted clock.
struct Host {
    explicit Host(TestBackend model = TestBackend{}, std::size_t max_queue = 64,
                  serving::Access access = {})
        : backend(std::move(model)),
          engine(backend, {.max_queue = max_queue}),
          service(backend.facts(),
                  {.version = "1.2.3",
                   .drain = std::chrono::seconds(5),
                   .max_queue = max_queue,
                   .access = std::move(access),
                   .entropy = 1,
                   .started = {},
                   .started_wall = {1'800'000'000'000'000'000}},
                  [this](Command command) { commands.push_back(std::move(command)); }) {}

    struct Client {
        std::string bytes;
        bool closed = false, keep_alive = false;
    };

    net::ConnectionId send(std::string method, std::string target, std::string body = {},
                           std::map<std::string, std::string> headers = {}) {
        net::ServiceActions out;
        const net::ConnectionId id = ++last_id;
        service.request(now += std::chrono::milliseconds(1),
                        {.id = id,
                         .method = std::move(method),
                         .target = std::move(target),
                         .headers = std::move(headers),
                         .body = std::move(body)},
                        out);
        carry_out(out);
        return id;
    }
    net::ConnectionId chat(const std::string& more, const std::string& question = "hi") {
        return send(
            "POST", "/v1/chat/completions",
            fmt::format(R"({{"messages":[{{"role":"user","content":"{}"}}],"temperature":0{}{}}})",
                        question, more.empty() ? "" : ",", more));
    }
    bool step() {
        EngineEvents events;
        for (Command& command : std::exchange(commands, {}))
            apply(engine, now += std::chrono::milliseconds(1), std::move(command), events);
        const bool more = engine.plan(now += std::chrono::milliseconds(1), events);
        if (more) {
            engine.compute();
            engine.commit(now += std::chrono::milliseconds(1), events);
        }
        net::ServiceActions out;
        service.deliver(events, engine.occupancy(), out);
        carry_out(out);
        return more;
    }
    void run() {
        while (step() || !commands.empty()) {
        }
    }
    void carry_out(const net::ServiceActions& actions) {
        for (const auto& action : actions) {
            if (const auto* sent = std::get_if<net::ServiceSend>(&action)) {
                EXPECT_FALSE(clients[sent->id].closed) << "nothing is sent after the end";
                clients[sent->id].bytes += sent->bytes;
            } else if (const auto* close = std::get_if<net::ServiceClose>(&action)) {
                EXPECT_FALSE(std::exchange(clients[close->id].closed, true))
                    << "an answer ends once";
                clients[close->id].keep_alive = close->keep_alive;
            } else if (const auto* wake = std::get_if<net::ServiceWake>(&action)) {
                wake_at = wake->at;
            }
        }
    }
    /// What our own reader makes of the bytes.
    answer::Record read(net::ConnectionId id) {
        answer::Record record;
        wire::AnswerReader reader(record);
        reader.bytes(clients[id].bytes, std::chrono::milliseconds(1),
                     answer::StampClock::kUserSpace);
        reader.end({wire::StreamEnd::Kind::kFin}, std::chrono::milliseconds(2));
        return record;
    }
    std::string body(net::ConnectionId id) {
        return clients[id].bytes.substr(clients[id].bytes.find("\r\n\r\n") + 4);
    }
    boost::json::value json_of(net::ConnectionId id) { return boost::json::parse(body(id)); }
    std::string get(const std::string& path) { return body(send("GET", path)); }

    TestBackend backend;
    Engine engine;
    HttpService service;
    std::vector<Command> commands;
    std::map<net::ConnectionId, Client> clients;
    base::Instant now{};
    std::optional<base::Instant> wake_at;
    net::ConnectionId last_id = 0;
};

}  // namespace fullstop::engine
