// Two parts of observe, one after the other, under one name; their connections never overlap.
#include "running/watching.h"

#include <limits>
#include <utility>

namespace fullstop::running {
namespace {

constexpr base::Duration kInterval = std::chrono::seconds(1);
/// A server that is down or still loading is asked again after this.
constexpr base::Duration kAskAgain = std::chrono::seconds(3);
/// Rounds without any answer until it is asked who it is: it may come back with other settings.
constexpr int kPatience = 3;
constexpr net::TimerId kAgain = std::numeric_limits<net::TimerId>::max();
constexpr net::TimerId kSamplerTick =
    0;  // of observe::Sampler, whose connections and timers count from 1

template <class T>
std::optional<std::int64_t> number(const answer::Fact<T>& fact) {
    if (!fact) return std::nullopt;
    if constexpr (std::is_integral_v<T>)
        return *fact;
    else
        return (*fact).count;
}

/// In a shared pool that ran full the slots' counts exceed the pool by up to a token each: this
/// much more is no accident.
constexpr double kProof = 1.25;

double idle_tokens(const answer::Sample& sample) {
    const auto held = sample.counters.find("slots.tokens_held"),
               running = sample.counters.find("slots.tokens_running");
    if (held == sample.counters.end() || running == sample.counters.end()) return 0;
    return held->second - running->second;
}

bool told_anything(const answer::Sample& sample) {
    return sample.running || sample.waiting || sample.kv_used || !sample.counters.empty();
}

}  // namespace

gateway::Capacity capacity_of(const observe::Identity& identity, bool shared) {
    const answer::ServerFacts& facts = identity.facts;
    gateway::Capacity out{.server =
                              facts.name + (facts.version.empty() ? "" : " " + facts.version)};
    out.slots = number(facts.slots);
    if (!out.slots && facts.name == "tgi")
        out.slots = number(facts.max_queue);  // it refuses beyond that
    out.window = number(facts.window);
    out.default_output = number(facts.default_max_tokens);
    out.models = identity.models;
    out.continues = facts.name == "llama-server" || facts.name == "fullstop";
    // Only of servers that cut answers when the pool is used up: the others let requests wait or
    // pause them themselves.
    if (facts.name == "llama-server" && out.slots > 1 && shared) out.pool = out.window;
    return out;
}

Watching::Watching(wire::ServerUrl url, std::string api_key, Calls calls)
    : url_(std::move(url)), api_key_(std::move(api_key)), calls_(std::move(calls)) {}
Watching::~Watching() = default;

wire::Headers Watching::headers() const {
    if (api_key_.empty()) return {};
    return {{"Authorization", "Bearer " + api_key_}};
}

void Watching::start(base::Instant now, net::Actions& out) { ask(now, out); }

void Watching::ask(base::Instant now, net::Actions& out) {
    identity_ = {};
    identify_ = std::make_unique<observe::Identify>(url_, headers(), identity_);
    identify_->start(now, out);
}

void Watching::identified(base::Instant now, net::Actions& out) {
    identify_.reset();
    if (!identity_.reachable) {
        out.emplace_back(net::SetTimer{.id = kAgain, .at = now + kAskAgain});
        return;
    }
    shared_ = true;
    silent_rounds_ = 0;
    calls_.learned(capacity_of(identity_, shared_));
    sampler_ = std::make_unique<observe::Sampler>(
        url_, headers(), identity_.facts, "", now, kInterval,
        [this](const answer::Sample& sample) { sampled(sample); });
    sampler_->start(now, out);
}

void Watching::sampled(const answer::Sample& sample) {
    silent_rounds_ = told_anything(sample) ? 0 : silent_rounds_ + 1;
    if (silent_rounds_ > 0) return;
    const auto window = number(identity_.facts.window);
    // What idle slots keep cached is more than one window holds: each slot has a cache of its own.
    if (shared_ && window && idle_tokens(sample) > kProof * static_cast<double>(*window)) {
        shared_ = false;
        calls_.learned(capacity_of(identity_, shared_));
    }
    calls_.loaded(
        {.running = sample.running, .waiting = sample.waiting, .kv_used = sample.kv_used});
}

void Watching::on(const net::Event& event, net::Actions& out) {
    if (std::holds_alternative<net::Interrupted>(event.what)) return stop();
    if (const auto* fired = std::get_if<net::TimerFired>(&event.what);
        fired != nullptr && fired->id == kAgain)
        return ask(event.at, out);
    if (identify_) {
        identify_->on(event, out);
        if (identify_->done()) identified(event.at, out);
        return;
    }
    if (!sampler_) return;
    sampler_->on(event, out);
    if (silent_rounds_ < kPatience) return;
    // Its round is over: nothing of it is open.
    sampler_.reset();
    out.emplace_back(net::CancelTimer{kSamplerTick});
    ask(event.at, out);
}

}  // namespace fullstop::running
