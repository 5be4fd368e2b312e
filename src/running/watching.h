// What the gateway is told of one upstream: asked once who it is and what it can hold, then about
// once a second how busy it is; asked anew when it did not answer, or no longer does. It runs
// beside the relay and is never needed by it.
#pragma once

#include <functional>
#include <memory>

#include "gateway/placement/upstream.h"
#include "net/event.h"
#include "observe/observer.h"
#include "wire/http/request_text.h"

namespace fullstop::running {

/// `shared`: the slots of a llama-server take from one pool of one window, as far as is known; it
/// does not say, and the safe reading is that they do.
gateway::Capacity capacity_of(const observe::Identity& identity, bool shared);

class Watching final : public net::Part {
public:
    struct Calls {
        std::function<void(gateway::Capacity)> learned;
        std::function<void(const gateway::Load&)> loaded;
    };
    /// `api_key`: for its questions; "": none.
    Watching(wire::ServerUrl url, std::string api_key, Calls calls);
    ~Watching() override;
    /// The upstream is no longer in the configuration.
    void stop() { stopped_ = true; }
    const std::string& api_key() const { return api_key_; }

    void start(base::Instant now, net::Actions& out) override;
    void on(const net::Event& event, net::Actions& out) override;
    bool done() const override { return stopped_; }

private:
    void ask(base::Instant now, net::Actions& out);
    void identified(base::Instant now, net::Actions& out);
    void sampled(const answer::Sample& sample);

    wire::Headers headers() const;

    wire::ServerUrl url_;
    std::string api_key_;
    Calls calls_;
    observe::Identity identity_;
    std::unique_ptr<observe::Identify> identify_;
    std::unique_ptr<observe::Sampler> sampler_;
    int silent_rounds_ = 0;
    bool shared_ = true, stopped_ = false;
};

}  // namespace fullstop::running
