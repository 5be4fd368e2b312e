#include "engine/scheduling/ranking.h"

#include <algorithm>

#include "engine/limits.h"

namespace fullstop::engine {
namespace {

constexpr std::int64_t kReadWeight = 1, kMadeWeight = 2;  // as in the paper

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
    out.served = clients_.used(sequence.client);
    return out;
}

void Ranking::arrived(const std::string& client) { clients_.comes(client); }

void Ranking::charge(const std::string& client, base::Tokens read, base::Tokens made) {
    clients_.settle(client, 0, kReadWeight * read.count + kMadeWeight * made.count);
}

void Ranking::ended(const std::string& client) { clients_.gone(client); }

}  // namespace fullstop::engine
