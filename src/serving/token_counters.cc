// The least of the active clients is looked for when somebody comes back: rare, and over as many as
// wait.
#include "serving/token_counters.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "serving/limits.h"

namespace fullstop::serving {

void TokenCounters::comes(const std::string& client) {
    Client& own = clients_[client];
    if (own.active++ > 0) return;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const auto& [name, each] : clients_)
        if (each.active > 0 && name != client) least = std::min(least, each.tokens);
    if (least != std::numeric_limits<std::int64_t>::max()) floor_ = std::max(floor_, least);
    own.tokens = std::max(own.tokens, floor_);
    if (clients_.size() > kMaxClients) forget();
}

void TokenCounters::gone(const std::string& client) {
    const auto found = clients_.find(client);
    FULLSTOP_ASSERT(found != clients_.end() && found->second.active > 0,
                    "a client leaves as often as it came");
    --found->second.active;
}

void TokenCounters::charge(const std::string& client, std::int64_t estimate) {
    if (const auto found = clients_.find(client); found != clients_.end())
        found->second.estimated += estimate;
}

void TokenCounters::settle(const std::string& client, std::int64_t estimate, std::int64_t tokens) {
    const auto found = clients_.find(client);
    if (found == clients_.end()) return;
    found->second.estimated -= estimate;
    found->second.tokens += tokens;
}

std::int64_t TokenCounters::used(const std::string& client) const {
    const auto found = clients_.find(client);
    return found == clients_.end() ? floor_ : found->second.tokens + found->second.estimated;
}

/// Whoever is idle and below the floor would be lifted to it anyway.
void TokenCounters::forget() {
    std::erase_if(clients_, [&](const auto& each) {
        return each.second.active == 0 && each.second.tokens <= floor_;
    });
    if (clients_.size() > kMaxClients)
        std::erase_if(clients_, [](const auto& each) { return each.second.active == 0; });
}

}  // namespace fullstop::serving
