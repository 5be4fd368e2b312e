// Counters live as long as their clients have answers here: a client that was away starts where the
// least served one stands.
#include "engine/scheduling/ranking.h"

#include <algorithm>

#include "base/assert.h"
#include "engine/limits.h"

namespace fullstop::engine {
namespace {

constexpr double kReadWeight = 1, kMadeWeight = 2;  // as in the paper

}  // namespace

Standing Ranking::of(const Sequence& sequence, base::Instant now) const {
    const auto aged = static_cast<std::int64_t>((now - sequence.arrived) / kAgeing);
    Standing out{.level = static_cast<int>(std::max<std::int64_t>(
                     -1, static_cast<std::int64_t>(sequence.priority) - aged)),
                 .due = base::Instant::max(),
                 .served = 0,
                 .rank = sequence.rank};
    if (out.level < 0) return out;
    out.due = sequence.due().value_or(base::Instant::max());
    if (sequence.admitted) return out;
    const auto found = clients_.find(sequence.client);
    FULLSTOP_ASSERT(found != clients_.end(), "who has an answer here has an account");
    out.served = found->second.served;
    return out;
}

void Ranking::arrived(const std::string& client) {
    const auto found = clients_.find(client);
    if (found != clients_.end()) {
        ++found->second.live;
        return;
    }
    double least = floor_;
    if (!clients_.empty())
        least = std::ranges::min_element(clients_, {}, [](const auto& entry) {
                    return entry.second.served;
                })->second.served;
    clients_[client] = {.live = 1, .served = least};
}

void Ranking::charge(const std::string& client, base::Tokens read, base::Tokens made) {
    clients_.at(client).served += kReadWeight * static_cast<double>(read.count) +
                                  kMadeWeight * static_cast<double>(made.count);
}

void Ranking::ended(const std::string& client) {
    const auto found = clients_.find(client);
    FULLSTOP_ASSERT(found != clients_.end() && found->second.live > 0, "each answer ends once");
    if (--found->second.live > 0) return;
    floor_ = found->second.served;
    clients_.erase(found);
}

}  // namespace fullstop::engine
