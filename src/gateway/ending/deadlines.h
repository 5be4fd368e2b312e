// The clocks of one answer. They are looked at by a timer, never "between reads", and each has its
// own name: an answer that one of them cut says which, how long it allowed and how long it took.
#pragma once

#include <optional>
#include <string_view>

#include "base/time.h"
#include "gateway/policy.h"

namespace fullstop::gateway {

enum class Limit { kQueueWait, kFirstToken, kIdle, kTotal };
/// As in the configuration.
std::string_view to_string(Limit);

class Clocks {
public:
    /// `stream`: a first token can be seen. Of an answer in one piece the first token is the last.
    Clocks(const Deadlines& deadlines, bool stream, base::Instant arrived)
        : deadlines_(deadlines),
          stream_(stream),
          arrived_(arrived),
          dispatched_(arrived),
          quiet_since_(arrived) {}

    void dispatched(base::Instant at) { waiting_ = false, dispatched_ = quiet_since_ = at; }
    void back_in_queue() { waiting_ = true; }
    /// Something moved: bytes of the upstream, or a client that lags or no longer does.
    void moved(base::Instant at) { quiet_since_ = at; }
    void first_token() { token_seen_ = true; }

    bool waiting() const { return waiting_; }
    base::Duration queued(base::Instant now) const {
        return (waiting_ ? now : dispatched_) - arrived_;
    }
    base::Instant arrived() const { return arrived_; }
    base::Instant quiet_since() const { return quiet_since_; }

    struct Fired {
        Limit limit = Limit::kTotal;
        base::Duration allowed{}, elapsed{};  ///< of that clock
        base::Instant at;                     ///< when it ran out
    };
    /// The clock that runs out first; absent when nothing limits this answer.
    std::optional<Fired> next(base::Instant now) const;

private:
    Deadlines deadlines_;
    bool stream_, waiting_ = true, token_seen_ = false;
    base::Instant arrived_, dispatched_, quiet_since_;
};

}  // namespace fullstop::gateway
