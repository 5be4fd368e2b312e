// What a server says of itself: asked before and after the load, and about once a second during it.
// A sans-IO part. Whatever is missing becomes `unavailable` with its reason; nothing here ever
// fails a run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "answer/run.h"
#include "net/event.h"
#include "wire/http/request_text.h"

namespace fullstop::observe {

/// What identify() found out with a few GETs: the server's name, its dialect, its models.
struct Identity {
    answer::ServerFacts facts;
    answer::Api api = answer::Api::kOpenAiChat;
    std::vector<std::string> models;
    bool reachable = false;
    std::string
        trouble;  ///< why not, with the next step: refused, TLS, 401, HTML instead of JSON, ...
    std::string hint;
};

/// Asks /v1/models, /props, /slots, /api/version, /api/ps, /metrics, /fullstop/status, /info,
/// /api/extra/version in turn and reads the answers. Done when it knows, or after kObserveTimeout
/// each.
class Identify final : public net::Part {
public:
    Identify(wire::ServerUrl url, wire::Headers headers, Identity& out);
    ~Identify() override;
    void start(base::Instant now, net::Actions& out) override;
    void on(const net::Event& event, net::Actions& out) override;
    bool done() const override;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Polls the endpoints that Identify saw answer (those in facts.raw), or `url` itself when its path
/// ends with /metrics. `sample` is called once a round, also when nothing answered. Runs until
/// stop() or Interrupted.
class Sampler final : public net::Part {
public:
    Sampler(wire::ServerUrl url, wire::Headers headers, const answer::ServerFacts& facts,
            std::string arm, base::Instant run_start, base::Duration interval,
            std::function<void(answer::Sample)> sample);
    ~Sampler() override;
    void stop();
    void start(base::Instant now, net::Actions& out) override;
    void on(const net::Event& event, net::Actions& out) override;
    bool done() const override;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Reads one Prometheus text into `sample` (names of vLLM, SGLang, llama-server, fullstop; suffix
/// _total optional).
void read_prometheus(std::string_view text, answer::Sample& sample);
/// Reads one of the JSON endpoints into `facts`; unknown shapes change nothing.
void read_props(std::string_view json, answer::ServerFacts& facts);
void read_slots(std::string_view json, answer::ServerFacts& facts);
void read_ollama_ps(std::string_view json, answer::ServerFacts& facts);
void read_ollama_show(std::string_view json, answer::ServerFacts& facts);
void read_models(std::string_view json, answer::ServerFacts& facts,
                 std::vector<std::string>& models);

}  // namespace fullstop::observe
