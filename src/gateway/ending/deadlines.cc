// Each clock answers the same question: when does it run out?
#include "gateway/ending/deadlines.h"

namespace fullstop::gateway {

std::string_view to_string(Limit limit) {
    switch (limit) {
        case Limit::kQueueWait: return "queue_wait";
        case Limit::kFirstToken: return "first_token";
        case Limit::kIdle: return "idle";
        case Limit::kTotal: return "total";
    }
    return "";
}

std::optional<Clocks::Fired> Clocks::next(base::Instant now) const {
    std::optional<Fired> first;
    const auto offer = [&](Limit limit, const std::optional<base::Duration>& allowed,
                           base::Instant since) {
        if (allowed && (!first || since + *allowed < first->at))
            first = {.limit = limit,
                     .allowed = *allowed,
                     .elapsed = now - since,
                     .at = since + *allowed};
    };
    if (waiting_) offer(Limit::kQueueWait, deadlines_.queue_wait, arrived_);
    if (!waiting_ && stream_ && !token_seen_)
        offer(Limit::kFirstToken, deadlines_.first_token, dispatched_);
    if (!waiting_) offer(Limit::kIdle, deadlines_.idle, quiet_since_);
    offer(Limit::kTotal, deadlines_.total, arrived_);
    return first;
}

}  // namespace fullstop::gateway
