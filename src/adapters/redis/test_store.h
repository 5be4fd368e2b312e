// For tests only: a store that exists as bytes alone, and a host that runs one BudgetStore against
// it in virtual time. It counts as the script does, without windows that move; connections break
// where the test says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/redis/budget_store.h"

namespace fullstop::adapters::redis {

class FakeStore {
public:
    static constexpr const char* kSha = "0123456789abcdef0123456789abcdef01234567";

    /// Replies to the whole commands in `bytes`; what is unfinished stays.
    std::string take(std::string& bytes) {
        std::string out;
        for (auto words = next(bytes); !words.empty(); words = next(bytes)) {
            ++commands;
            seen.push_back(words[0]);
            out += reply(words);
        }
        return out;
    }
    /// A restart without persistence.
    void forget() {
        held.clear();
        spent = 0;
        loaded = false;
    }
    std::int64_t reserved() const {
        std::int64_t sum = 0;
        for (const auto& [id, tokens] : held) sum += tokens;
        return sum;
    }

    std::int64_t limit = 1000, spent = 0;
    std::int64_t twice = 0;  ///< of it, ends that were told twice of what it did not know
    std::map<std::string, std::int64_t> held;
    std::set<std::string> settled;
    bool loaded = false;
    std::string error;       ///< instead of every reply of the script
    std::string auth_error;  ///< of AUTH
    int commands = 0;
    std::vector<std::string> seen;
    std::string last_key;

private:
    static std::int64_t number(std::string_view digits) {
        std::int64_t out = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), out);
        return out;
    }
    static std::vector<std::string> next(std::string& bytes) {
        std::vector<std::string> out;
        std::size_t at = bytes.find("\r\n");
        if (at == std::string::npos) return {};
        const std::int64_t count = number(std::string_view(bytes).substr(1, at - 1));
        at += 2;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::size_t line = bytes.find("\r\n", at);
            if (line == std::string::npos) return {};
            const auto size = static_cast<std::size_t>(
                number(std::string_view(bytes).substr(at + 1, line - at - 1)));
            if (bytes.size() < line + 4 + size) return {};
            out.push_back(bytes.substr(line + 2, size));
            at = line + 4 + size;
        }
        bytes.erase(0, at);
        return out;
    }
    std::string reply(const std::vector<std::string>& words) {
        if (words[0] == "AUTH") return auth_error.empty() ? "+OK\r\n" : "-" + auth_error + "\r\n";
        if (words[0] == "SELECT") return "+OK\r\n";
        if (words[0] == "SCRIPT") return loaded = true, "$40\r\n" + std::string(kSha) + "\r\n";
        if (!error.empty()) return "-" + error + "\r\n";
        if (words[0] == "EVALSHA" && !loaded)
            return "-NOSCRIPT No matching script. Please use EVAL.\r\n";
        loaded = true;
        return run(words);
    }
    std::string run(const std::vector<std::string>& words) {
        const auto first = static_cast<std::size_t>(3 + number(words[2]));
        last_key = words[3];
        const std::string &what = words[first], &id = words[first + 1];
        const std::int64_t tokens = number(words[first + 2]), used = number(words[first + 4]);
        if (what == "reserve" && !held.contains(id)) {
            const std::int64_t left = limit - spent - reserved();
            if (left < tokens)
                return "*4\r\n:0\r\n:1\r\n:" + std::to_string(left) + "\r\n:2500\r\n";
            held[id] = tokens;
        } else if (what == "settle") {
            const bool known = held.erase(id) > 0;
            if (known || words[first + 5] == "add") spent += used;
            if (!settled.insert(id).second && !known && words[first + 5] == "add") twice += used;
        } else if (what == "renew") {
            held.emplace(id, tokens);
        }
        return "*1\r\n:1\r\n";
    }
};

/// The part on virtual connections. What it sends arrives when deliver() is called, replies when
/// hear() is.
class StoreBench {
public:
    explicit StoreBench(gateway::SharedStore where = place()) : part(std::move(where), "ab12") {
        act([&](net::Actions& out) { part.start(now, out); });
    }
    static gateway::SharedStore place() {
        return {.host = "store", .timeout = std::chrono::milliseconds(500)};
    }
    static gateway::StoreReserve wish(std::uint64_t id, std::int64_t tokens = 100) {
        return {.id = id,
                .tokens = tokens,
                .windows = {{.name = "overall",
                             .limit = {.tokens = 1000, .window = std::chrono::seconds(60)},
                             .what = "all"}}};
    }

    void reserve(std::uint64_t id, std::int64_t tokens = 100) {
        act([&](net::Actions& out) { part.ask(now, wish(id, tokens), out); });
    }
    void settle(std::uint64_t id, std::int64_t used) {
        act([&](net::Actions& out) {
            part.ask(now, gateway::StoreSettle{.id = id, .used = used}, out);
        });
    }
    bool connecting() const { return connection != 0 && !open; }
    void accept() {
        open = true;
        tell(net::Connected{connection});
    }
    void refuse() {
        tell(net::ConnectFailed{std::exchange(connection, 0), net::ConnectFailure::kRefused,
                                "Connection refused"});
    }
    /// The store reads what was sent to it.
    void deliver() { replies += store.take(sent); }
    void hear(std::size_t bytes = std::string::npos) {
        const std::string piece = replies.substr(0, bytes);
        replies.erase(0, piece.size());
        if (!piece.empty() && open)
            tell(net::Received{connection, piece, answer::StampClock::kUserSpace});
    }
    /// Until nothing moves any more.
    void exchange() {
        for (int i = 0; i < 1000; ++i) {
            if (connecting()) accept();
            deliver();
            if (replies.empty()) return;
            hear();
        }
        FAIL() << "store and part never come to rest";
    }
    void break_connection() {
        const auto id = std::exchange(connection, 0);
        drop();
        tell(net::PeerClosed{id, net::CloseKind::kRst, "Connection reset by peer"});
    }
    /// Time passes, and the timer fires when it is due.
    void pass(base::Duration time) {
        const base::Instant until = now + time;
        for (int i = 0; timer && *timer <= until; ++i) {
            ASSERT_LT(i, 10'000) << "the timer fires without end";
            now = std::max(now, *timer);
            timer.reset();
            tell(net::TimerFired{1});
        }
        now = until;
    }
    void act(const std::function<void(net::Actions&)>& decide) {
        net::Actions out;
        decide(out);
        take(out);
    }
    /// What was answered since the last time, as words.
    std::string answers() {
        std::string out;
        for (const auto& each : heard) {
            constexpr std::array kWords = {"granted", "refused", "lost"};
            out += (out.empty() ? "" : " ") + std::to_string(each.id) + " " +
                   kWords[static_cast<std::size_t>(each.what)];
        }
        heard.clear();
        return out;
    }

    BudgetStore part;
    FakeStore store;
    base::Instant now{std::chrono::seconds(100)};
    net::ConnectionId connection = 0;
    bool open = false;
    int connects = 0;
    std::string sent, replies;
    net::Connect last_connect{};
    std::optional<base::Instant> timer;
    std::vector<gateway::StoreAnswer> heard;

private:
    void drop() {
        open = false;
        sent.clear();
        replies.clear();
    }
    void tell(decltype(net::Event::what) what) {
        act([&](net::Actions& out) { part.on({now, std::move(what)}, out); });
    }
    void take(const net::Actions& actions) {
        for (const auto& action : actions) {
            if (const auto* connect = std::get_if<net::Connect>(&action)) {
                EXPECT_EQ(connection, 0U) << "one connection at a time";
                connection = connect->id;
                last_connect = *connect;
                ++connects;
            } else if (const auto* send = std::get_if<net::Send>(&action)) {
                EXPECT_TRUE(open && send->id == connection)
                    << "sent to a connection that is not there";
                sent += send->bytes;
            } else if (const auto* close = std::get_if<net::Close>(&action)) {
                EXPECT_EQ(close->id, connection);
                connection = 0;
                drop();
            } else if (const auto* set = std::get_if<net::SetTimer>(&action)) {
                timer = set->at;
            }
        }
        for (auto& each : part.take_answers()) heard.push_back(each);
    }
};

}  // namespace fullstop::adapters::redis
