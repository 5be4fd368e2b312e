// A server that answers as its script says: slots and a queue, prefill, a decode step shared by all
// running sequences, and plants that end or disturb answers. One net::Service for the virtual
// world, for real sockets and for end-to-end tests.
//
// It speaks OpenAI chat, Ollama's /api/chat and llama-server's /completion, streamed or whole, and
// tells of itself on the endpoints of the product it plays. Left out: real tokenising, sampling,
// stop strings, tools.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net/service.h"
#include "simulator/plants/plant.h"
#include "simulator/server/server_script.h"

namespace fullstop::simulator {

// name                                value      at the limit
/// Requests in the house, queued ones included: more than the highest concurrency level.   503 as
/// an honest server would
inline constexpr std::size_t kMaxSequences = 4096;

class ScriptedServer final : public net::Service {
public:
    explicit ScriptedServer(ServerScript script, std::vector<std::unique_ptr<Plant>> plants = {});
    ~ScriptedServer() override;

    void request(base::Instant now, net::ServiceRequest request, net::ServiceActions& out) override;
    void client_left(base::Instant now, net::ConnectionId id, net::ServiceActions& out) override;
    void wake(base::Instant now, net::ServiceActions& out) override;
    bool listening(base::Instant now) const override;

    std::int64_t answers_begun() const;
    std::int64_t preemptions() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fullstop::simulator
