// Rounds: every interval, each endpoint that Identify saw answer is asked once, one after the
// other, and one Sample comes of it. A server too busy to answer costs one waiting connection,
// never a queue of them; a round without any answer still gives a Sample, so that the host can put
// the machine's memory into it.
#include <algorithm>
#include <optional>
#include <utility>

#include "observe/exchange.h"
#include "observe/limits.h"
#include "observe/observer.h"
#include "observe/server_json.h"

namespace fullstop::observe {
namespace {

constexpr net::TimerId kTick = 0;  // connections, and the timer of each, count from 1
constexpr std::string_view kMetrics = "/metrics";

}  // namespace

struct Sampler::State {
    struct Endpoint {
        std::string path;
        int failures = 0;  ///< in a row
    };

    wire::ServerUrl url;
    wire::Headers headers;
    std::string arm;
    base::Instant run_start;
    base::Duration interval;
    std::function<void(answer::Sample)> sample;
    std::vector<Endpoint> endpoints;

    answer::Sample current;
    base::Instant round_began{};
    std::uint64_t round = 0;
    std::size_t next = 0;  ///< endpoint of this round
    std::optional<Exchange> exchange;
    net::ConnectionId next_id = 1;
    bool stopped = false;

    bool due(const Endpoint& endpoint) const {
        return endpoint.failures < kPatience || round % kSlowRounds == 0;
    }
    void begin_round(base::Instant at, net::Actions& out);
    void ask_next(base::Instant at, net::Actions& out);
    void take(Endpoint& endpoint, const Reply& reply);
};

void Sampler::State::begin_round(base::Instant at, net::Actions& out) {
    ++round;
    round_began = at;
    next = 0;
    current = {};
    current.at = at - run_start;
    current.arm = arm;
    ask_next(at, out);
}

void Sampler::State::ask_next(base::Instant at, net::Actions& out) {
    while (next < endpoints.size() && !due(endpoints[next])) ++next;
    if (next < endpoints.size()) {
        exchange.emplace(next_id++, net::Endpoint{url.host, url.port, url.tls},
                         wire::get_text(url, endpoints[next].path, headers), at, out);
        return;
    }
    if (sample) sample(std::move(current));
    out.emplace_back(net::SetTimer{kTick, std::max(at, round_began + interval)});
}

void Sampler::State::take(Endpoint& endpoint, const Reply& reply) {
    if (!reply.ok()) {
        ++endpoint.failures;
        return;
    }
    endpoint.failures = 0;
    if (endpoint.path == kMetrics || endpoint.path.empty()) read_prometheus(reply.body, current);
    if (endpoint.path == "/slots") sample_slots(reply.body, current);
    if (endpoint.path == "/fullstop/status") sample_fullstop_status(reply.body, current);
    if (endpoint.path == "/api/ps") sample_ollama_ps(reply.body, current);
}

Sampler::Sampler(wire::ServerUrl url, wire::Headers headers, const answer::ServerFacts& facts,
                 std::string arm, base::Instant run_start, base::Duration interval,
                 std::function<void(answer::Sample)> sample)
    : state_(std::make_unique<State>()) {
    State& state = *state_;
    if (url.base_path.ends_with(kMetrics)) {
        state.endpoints.push_back({.path = ""});  // the user named the metrics page itself
    } else {
        for (const char* path : {"/metrics", "/slots", "/fullstop/status", "/api/ps"})
            if (facts.raw.contains(path)) state.endpoints.push_back({.path = path});
    }
    state.url = std::move(url);
    state.headers = std::move(headers);
    state.arm = std::move(arm);
    state.run_start = run_start;
    state.interval = interval;
    state.sample = std::move(sample);
}

Sampler::~Sampler() = default;

void Sampler::stop() { state_->stopped = true; }

void Sampler::start(base::Instant now, net::Actions& out) { state_->begin_round(now, out); }

void Sampler::on(const net::Event& event, net::Actions& out) {
    State& state = *state_;
    if (state.stopped) return;
    if (std::holds_alternative<net::Interrupted>(event.what)) {
        if (state.exchange) state.exchange->abandon(out);
        state.exchange.reset();
        state.stopped = true;
        return;
    }
    if (const auto* fired = std::get_if<net::TimerFired>(&event.what); fired && fired->id == kTick)
        return state.begin_round(event.at, out);
    if (!state.exchange) return;
    const auto reply = state.exchange->on(event, out);
    if (!reply) return;
    state.exchange.reset();
    state.take(state.endpoints[state.next], *reply);
    ++state.next;
    state.ask_next(event.at, out);
}

bool Sampler::done() const { return state_->stopped; }

}  // namespace fullstop::observe
