// A server for the tests of this folder, in virtual time: replies by path, refusals, silence, half
// bodies.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/event.h"

namespace fullstop::observe {

class TestServer {
public:
    /// Reply bytes by path, as they stand on the wire; a path that is missing answers 404.
    std::map<std::string, std::string> replies;
    std::set<std::string> silent;               ///< accepted, never answered
    std::set<std::string> closes;               ///< FIN right after the bytes of its reply
    std::optional<net::ConnectFailed> refuses;  ///< every connection
    std::vector<std::string> asked;             ///< method and path, in order
    std::vector<std::string> requests;          ///< verbatim
    std::size_t most_open = 0;

    static std::string http(int status, const std::string& body,
                            const std::string& type = "application/json",
                            const std::string& more = "") {
        return fmt::format("HTTP/1.1 {} X\r\nContent-Type: {}\r\n{}Content-Length: {}\r\n\r\n{}",
                           status, type, more, body.size(), body);
    }
    void json(const std::string& path, const std::string& body) { replies[path] = http(200, body); }

    /// Until the part is done or `until` has passed.
    void run(net::Part& part, base::Duration until = std::chrono::hours(1)) {
        net::Actions actions;
        part.start(now_, actions);
        act(actions);
        const base::Instant end = now_ + until;
        for (int steps = 0; !part.done(); ++steps) {
            ASSERT_LT(steps, 100'000) << "the part never ends";
            ASSERT_FALSE(queue_.empty()) << "the part waits for nothing";
            auto next = queue_.extract(queue_.begin());
            if (next.key() > end) return;
            now_ = next.key();
            actions.clear();
            next.mapped()(part, actions);
            act(actions);
        }
    }
    void interrupt(base::Duration after) {
        queue_.emplace(now_ + after, [at = now_ + after](net::Part& part, net::Actions& out) {
            part.on({at, net::Interrupted{}}, out);
        });
    }
    base::Instant now() const { return now_; }
    std::size_t open() const { return open_.size(); }

private:
    using Deliver = std::function<void(net::Part&, net::Actions&)>;

    void later(net::ConnectionId id, base::Duration after,
               std::function<void(net::Part&, base::Instant, net::Actions&)> deliver) {
        const base::Instant at = now_ + after;
        queue_.emplace(at, [this, id, at, deliver](net::Part& part, net::Actions& out) {
            if (open_.contains(id)) deliver(part, at, out);
        });
    }
    void act(const net::Actions& actions) {
        for (const net::Action& action : actions)
            std::visit([this](const auto& what) { take(what); }, action);
    }
    void take(const net::Connect& connect) {
        open_.insert(connect.id);
        most_open = std::max(most_open, open_.size());
        later(connect.id, std::chrono::milliseconds(1),
              [this, id = connect.id](net::Part& part, base::Instant at, net::Actions& out) {
                  if (!refuses) return part.on({at, net::Connected{id}}, out);
                  open_.erase(id);
                  part.on({at, net::ConnectFailed{id, refuses->why, refuses->text}}, out);
              });
    }
    void take(const net::Send& send) {
        requests.push_back(send.bytes);
        const auto method = send.bytes.substr(0, send.bytes.find(' '));
        const auto path = send.bytes.substr(
            method.size() + 1, send.bytes.find(' ', method.size() + 1) - method.size() - 1);
        asked.push_back(method + " " + path);
        if (silent.contains(path)) return;
        const auto reply = replies.find(path);
        const std::string bytes =
            reply == replies.end()
                ? http(
                      404,
                      R"({"error":{"code":404,"message":"File Not Found","type":"not_found_error"}})")
                : reply->second;
        // In two reads, so that no reader relies on whole replies.
        for (const auto& half : {bytes.substr(0, bytes.size() / 2), bytes.substr(bytes.size() / 2)})
            later(send.id, std::chrono::milliseconds(2),
                  [id = send.id, half](net::Part& part, base::Instant at, net::Actions& out) {
                      part.on({at, net::Received{id, half, answer::StampClock::kUserSpace}}, out);
                  });
        if (closes.contains(path))
            later(send.id, std::chrono::milliseconds(3),
                  [id = send.id](net::Part& part, base::Instant at, net::Actions& out) {
                      part.on({at, net::PeerClosed{id, net::CloseKind::kFin, ""}}, out);
                  });
    }
    void take(const net::Close& close) { open_.erase(close.id); }
    void take(const net::SetTimer& timer) {
        const int version = ++timers_[timer.id];
        queue_.emplace(timer.at, [this, timer, version](net::Part& part, net::Actions& out) {
            if (timers_[timer.id] == version) part.on({timer.at, net::TimerFired{timer.id}}, out);
        });
    }
    void take(const net::Flow&) {}
    void take(const net::CancelTimer& timer) { ++timers_[timer.id]; }

    base::Instant now_{std::chrono::hours(1)};
    std::multimap<base::Instant, Deliver> queue_;
    std::set<net::ConnectionId> open_;
    std::map<net::TimerId, int> timers_;
};

}  // namespace fullstop::observe
