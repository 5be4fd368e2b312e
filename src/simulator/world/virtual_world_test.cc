// Promises of the virtual network: order, repeatability, splitting, ends of connections, timers,
// limits.
#include "simulator/world/virtual_world.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace fullstop::simulator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

const net::Endpoint kServer{"server", 80, false};

/// A client whose reactions a test writes down; keeps a line for each event.
class NotingPart final : public net::Part {
public:
    std::function<void(base::Instant, net::Actions&)> on_start = [](base::Instant, net::Actions&) {
    };
    std::function<void(const net::Event&, net::Actions&)> on_event = [](const net::Event&,
                                                                        net::Actions&) {};
    std::vector<std::string> lines;
    std::vector<std::size_t> read_sizes;
    std::string received;
    bool finished = false;
    base::Instant begun{};

    void start(base::Instant now, net::Actions& out) override {
        begun = now;
        on_start(now, out);
    }
    void on(const net::Event& event, net::Actions& out) override {
        const auto us =
            std::chrono::duration_cast<std::chrono::microseconds>(event.at - begun).count();
        std::visit([&](const auto& what) { lines.push_back(fmt::format("{} {}", us, note(what))); },
                   event.what);
        on_event(event, out);
    }
    bool done() const override { return finished; }

private:
    static std::string note(const net::Connected& e) { return fmt::format("connected {}", e.id); }
    static std::string note(const net::ConnectFailed& e) {
        return fmt::format("failed {} {}", e.id, e.text);
    }
    static std::string note(const net::Sent& e) { return fmt::format("sent {}", e.id); }
    std::string note(const net::Received& e) {
        received += e.bytes;
        read_sizes.push_back(e.bytes.size());
        return fmt::format("received {} {}", e.id, e.bytes);
    }
    static std::string note(const net::PeerClosed& e) {
        return fmt::format("closed {} {}", e.id, e.kind == net::CloseKind::kFin ? "fin" : "rst");
    }
    static std::string note(const net::TimerFired& e) { return fmt::format("timer {}", e.id); }
    static std::string note(const net::Interrupted&) { return "interrupted"; }
};

/// Answers each request with what a test wants.
class NotingService final : public net::Service {
public:
    std::function<void(base::Instant, const net::ServiceRequest&, net::ServiceActions&)> on_request;
    std::function<bool(const net::ServiceRequest&, net::ServiceActions&)> on_head;
    std::vector<net::ServiceRequest> requests;
    std::vector<net::ConnectionId> left;
    bool alive = true;

    bool head(base::Instant, const net::ServiceRequest& request,
              net::ServiceActions& out) override {
        return !on_head || on_head(request, out);
    }
    void request(base::Instant now, net::ServiceRequest request,
                 net::ServiceActions& out) override {
        requests.push_back(request);
        if (on_request) on_request(now, request, out);
    }
    void client_left(base::Instant, net::ConnectionId id, net::ServiceActions&) override {
        left.push_back(id);
    }
    void wake(base::Instant, net::ServiceActions&) override {}
    bool listening(base::Instant) const override { return alive; }
};

std::string get(std::string_view target) {
    return fmt::format("GET {} HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n", target);
}

/// Connects, sends one request, and is done at the peer's close or a failure.
void ask_once(NotingPart& part, std::string request, net::Endpoint endpoint = kServer) {
    part.on_start = [endpoint](base::Instant, net::Actions& out) {
        out.push_back(net::Connect{1, endpoint, seconds(10)});
    };
    part.on_event = [&part, request](const net::Event& event, net::Actions& out) {
        if (std::holds_alternative<net::Connected>(event.what))
            out.push_back(net::Send{1, request});
        if (std::holds_alternative<net::PeerClosed>(event.what) ||
            std::holds_alternative<net::ConnectFailed>(event.what))
            part.finished = true;
    };
}

TEST(VirtualWorld, CarriesARequestAndItsAnswerInOrder) {
    VirtualWorld world(1, {.split_chance = 0});
    NotingService service;
    service.on_request = [](base::Instant, const net::ServiceRequest& request,
                            net::ServiceActions& out) {
        out.push_back(net::ServiceSend{request.id, "one"});
        out.push_back(net::ServiceSend{request.id, "two"});
        out.push_back(net::ServiceClose{request.id, net::CloseKind::kFin, false});
    };
    NotingPart part;
    ask_once(part, "POST /x HTTP/1.1\r\nContent-Length: 4\r\nX-A: b\r\n\r\nbody");
    world.serve("server", 80, service);
    world.host(part);
    ASSERT_EQ(world.run(seconds(5)), Outcome::kDone);
    ASSERT_EQ(service.requests.size(), 1u);
    EXPECT_EQ(service.requests[0].method, "POST");
    EXPECT_EQ(service.requests[0].target, "/x");
    EXPECT_EQ(service.requests[0].body, "body");
    EXPECT_EQ(service.requests[0].headers.at("x-a"), "b");
    std::vector<std::string> words;
    for (const auto& line : part.lines) words.push_back(line.substr(line.find(' ') + 1));
    EXPECT_THAT(words, ElementsAre("connected 1", "sent 1", "received 1 one", "received 1 two",
                                   "closed 1 fin"));
    EXPECT_EQ(world.open_connections(), 0u);
}

TEST(VirtualWorld, AServiceMayAnswerToTheHeadBeforeTheBody) {
    VirtualWorld world(1);
    NotingService service;
    service.on_head = [](const net::ServiceRequest& request, net::ServiceActions& out) {
        EXPECT_EQ(request.target + request.headers.at("x-a") + request.body, "/xb");
        out.push_back(net::ServiceSend{request.id, "no"});
        out.push_back(net::ServiceClose{request.id, net::CloseKind::kFin, true});
        return false;
    };
    NotingPart part;
    ask_once(part, "POST /x HTTP/1.1\r\nContent-Length: 4\r\nX-A: b\r\n\r\n");
    world.serve("server", 80, service);
    world.host(part);
    ASSERT_EQ(world.run(seconds(5)), Outcome::kDone) << "it closes, because of the body";
    EXPECT_EQ(part.received, "no");
    EXPECT_TRUE(service.requests.empty());
}

TEST(VirtualWorld, SameSeedSameBytesAtTheSameMoments) {
    const auto play = [](std::uint64_t seed) {
        VirtualWorld world(seed, {.split_chance = 0.5, .max_read = 7});
        NotingService service;
        service.on_request = [](base::Instant, const net::ServiceRequest& request,
                                net::ServiceActions& out) {
            for (int i = 0; i < 20; ++i)
                out.push_back(net::ServiceSend{request.id, fmt::format("piece number {};", i)});
            out.push_back(net::ServiceClose{request.id, net::CloseKind::kFin, false});
        };
        std::vector<NotingPart> parts(3);
        world.serve("server", 80, service);
        for (auto& part : parts) {
            ask_once(part, get("/"));
            world.host(part);
        }
        EXPECT_EQ(world.run(seconds(5)), Outcome::kDone);
        std::vector<std::string> all;
        for (const auto& part : parts) all.insert(all.end(), part.lines.begin(), part.lines.end());
        return all;
    };
    EXPECT_EQ(play(7), play(7));
    EXPECT_NE(play(7), play(8));
}

TEST(VirtualWorld, SplittingNeverLosesDoublesOrReordersAByte) {
    std::string sent;
    for (int i = 0; i < 500; ++i) sent += fmt::format("{:04} ", i);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        VirtualWorld world(seed, {.split_chance = 1, .max_read = 1 + seed * 3});
        NotingService service;
        service.on_request = [&](base::Instant, const net::ServiceRequest& request,
                                 net::ServiceActions& out) {
            for (std::size_t at = 0; at < sent.size(); at += 100)
                out.push_back(net::ServiceSend{request.id, sent.substr(at, 100)});
            out.push_back(net::ServiceClose{request.id, net::CloseKind::kRst, false});
        };
        NotingPart part;
        ask_once(part, get("/"));
        world.serve("server", 80, service);
        world.host(part);
        ASSERT_EQ(world.run(seconds(5)), Outcome::kDone);
        EXPECT_EQ(part.received, sent);
        EXPECT_LE(*std::ranges::max_element(part.read_sizes), 1 + seed * 3);
        EXPECT_THAT(part.lines.back(), ::testing::EndsWith("closed 1 rst"));
    }
}

TEST(VirtualWorld, RefusesWhereNobodyListensAndTimesOutWhereNobodyAnswers) {
    VirtualWorld world(1);
    NotingService dead;
    dead.alive = false;
    world.serve("dead", 80, dead);
    world.swallow("hole", 80);
    NotingPart nobody, process_gone, hole, tls;
    ask_once(nobody, get("/"), {"elsewhere", 80, false});
    ask_once(process_gone, get("/"), {"dead", 80, false});
    ask_once(hole, get("/"), {"hole", 80, false});
    ask_once(tls, get("/"), {"dead", 80, true});
    for (auto* part : {&nobody, &process_gone, &hole, &tls}) world.host(*part);
    ASSERT_EQ(world.run(seconds(60)), Outcome::kDone);
    EXPECT_THAT(nobody.lines.back(), ::testing::EndsWith("failed 1 Connection refused"));
    EXPECT_THAT(process_gone.lines.back(), ::testing::EndsWith("failed 1 Connection refused"));
    EXPECT_EQ(hole.lines.back(), "10000000 failed 1 Connection timed out");
    EXPECT_THAT(tls.lines.back(), ::testing::HasSubstr("does not play TLS"));
    EXPECT_EQ(world.open_connections(), 0u);
}

TEST(VirtualWorld, TellsTheServiceWhenAClientLeavesARunningAnswer) {
    VirtualWorld world(1);
    NotingService service;
    service.on_request = [](base::Instant, const net::ServiceRequest& request,
                            net::ServiceActions& out) {
        out.push_back(net::ServiceSend{request.id, "start"});
    };
    NotingPart part;
    part.on_start = [](base::Instant, net::Actions& out) {
        out.push_back(net::Connect{5, kServer, seconds(1)});
    };
    part.on_event = [&](const net::Event& event, net::Actions& out) {
        if (std::holds_alternative<net::Connected>(event.what))
            out.push_back(net::Send{5, get("/")});
        if (std::holds_alternative<net::Received>(event.what)) out.push_back(net::Close{5});
    };
    world.serve("server", 80, service);
    world.host(part);
    EXPECT_EQ(world.run_until([&] { return !service.left.empty(); }, seconds(5)), Outcome::kDone);
    EXPECT_EQ(service.left, std::vector<net::ConnectionId>{service.requests.at(0).id});
    EXPECT_EQ(world.run(seconds(5)), Outcome::kIdle) << "no further event for a closed connection";
    EXPECT_EQ(world.open_connections(), 0u);
}

TEST(VirtualWorld, TimersFireInOrderOfTimeMoveWhenSetAgainAndFallSilentWhenCancelled) {
    VirtualWorld world(1);
    NotingPart part;
    part.on_start = [](base::Instant now, net::Actions& out) {
        out.push_back(net::SetTimer{1, now + milliseconds(30)});
        out.push_back(net::SetTimer{2, now + milliseconds(10)});
        out.push_back(net::SetTimer{3, now + milliseconds(20)});
        out.push_back(net::SetTimer{4, now + milliseconds(30)});
        out.push_back(net::SetTimer{2, now + milliseconds(40)});
        out.push_back(net::CancelTimer{3});
    };
    part.on_event = [&](const net::Event&, net::Actions&) {
        part.finished = part.lines.size() == 3;
    };
    world.host(part);
    ASSERT_EQ(world.run(seconds(1)), Outcome::kDone);
    EXPECT_THAT(part.lines, ElementsAre("30000 timer 1", "30000 timer 4", "40000 timer 2"));
}

TEST(VirtualWorld, SaysWhyARunThatDoesNotEndCameBack) {
    VirtualWorld world(1);
    NotingPart waiting;
    waiting.on_start = [](base::Instant now, net::Actions& out) {
        out.push_back(net::SetTimer{1, now + seconds(100)});
    };
    world.host(waiting);
    const auto before = world.now();
    EXPECT_EQ(world.run(seconds(50)), Outcome::kTimeLimit);
    EXPECT_EQ(world.now() - before, seconds(50));
    EXPECT_EQ(world.run(seconds(60)), Outcome::kIdle);
    NotingPart restless;
    restless.on_start = [](base::Instant now, net::Actions& out) {
        out.push_back(net::SetTimer{1, now});
    };
    restless.on_event = [](const net::Event& event, net::Actions& out) {
        out.push_back(net::SetTimer{1, event.at});
    };
    world.host(restless);
    EXPECT_EQ(world.run(seconds(1)), Outcome::kBusyLoop);
}

TEST(VirtualWorld, AnswersABrokenRequestItself) {
    for (const auto& [request, status] : std::vector<std::pair<std::string, std::string>>{
             {"nonsense\r\n\r\n", "400"},
             {"GET / HTTP/1.1\r\nno colon\r\n\r\n", "400"},
             {"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", "400"},
             {"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", "413"},
             {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "501"},
             {"GET / HTTP/1.1\r\nX: " + std::string(70'000, 'x'), "431"},
         }) {
        VirtualWorld world(1);
        NotingService service;
        NotingPart part;
        ask_once(part, request);
        world.serve("server", 80, service);
        world.host(part);
        ASSERT_EQ(world.run(seconds(5)), Outcome::kDone) << status;
        EXPECT_THAT(part.received, ::testing::StartsWith("HTTP/1.1 " + status));
        EXPECT_TRUE(service.requests.empty());
    }
}

TEST(VirtualWorld, InterruptReachesEveryPart) {
    VirtualWorld world(1);
    std::vector<NotingPart> parts(2);
    for (auto& part : parts) {
        part.on_event = [&part](const net::Event&, net::Actions&) { part.finished = true; };
        world.host(part);
    }
    world.interrupt(world.now() + seconds(2));
    ASSERT_EQ(world.run(seconds(5)), Outcome::kDone);
    for (const auto& part : parts) EXPECT_THAT(part.lines, ElementsAre("2000000 interrupted"));
}

}  // namespace
}  // namespace fullstop::simulator
