// Everything a configuration decides, as plain values: which upstreams, who waits how, and what may
// cut an answer. A running gateway takes a new one without touching the answers under way. Reading
// and checking files is cli's.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "gateway/limits.h"
#include "serving/access.h"
#include "serving/priority.h"
#include "wire/http/request_text.h"

namespace fullstop::gateway {

using serving::Priority, serving::kPriorities;

/// The clocks that can cut an answer. Absent: not limited.
struct Deadlines {
    std::optional<base::Duration> queue_wait;   ///< from arrival until an upstream is chosen
    std::optional<base::Duration> first_token;  ///< of a stream: from then until its first token
    std::optional<base::Duration> idle = kDefaultIdle;  ///< silence of the upstream
    std::optional<base::Duration> total;                ///< from arrival to the end
};

struct QueueLimits {
    std::size_t requests = kDefaultQueueRequests;
    std::int64_t tokens = kDefaultQueueTokens;
    base::Duration ageing = kDefaultAgeing;
    /// Answers at once, of all upstreams, that other classes leave free for this one.
    std::array<int, kPriorities> floors{};
};

struct UpstreamOptions {
    wire::ServerUrl url;
    std::optional<std::int64_t> max_concurrency =
        {};  ///< answers at once; absent: as learned, else not limited
    std::optional<std::int64_t> kv_tokens =
        {};  ///< tokens that its answers share; absent: as learned, else not limited
    /// Length that a request without a limit is taken to need; absent: all that its window leaves.
    std::optional<std::int64_t> expected_output = {};
    bool learn = true;      ///< what the server tells of slots and memory counts
    bool draining = false;  ///< gets no new requests
    std::string api_key_env =
        {};  ///< name of the variable with the key for questions about itself; "": none
    std::string api_key = {};  ///< what it holds; never shown. Requests carry it where the gateway
                               ///< has keys of its own
    std::vector<std::string> models = {};  ///< names that it serves; empty: as learned, else any
};

/// At most `tokens` of prompts and answers in any `window`.
struct TokenWindow {
    std::int64_t tokens = 0;
    base::Duration window = std::chrono::hours(1);
};
/// A Redis or Valkey in which several gateways count together.
struct SharedStore {
    /// What becomes of a request when the store does not answer: this process's own counts alone
    /// decide, or it is refused.
    enum class OnLoss { kOpen, kClosed };
    std::string host;
    std::uint16_t port = kDefaultStorePort;
    bool tls = false;
    std::string user = {}, password = {};  ///< never shown
    int database = 0;
    std::string prefix = kDefaultStorePrefix;  ///< of its keys: gateways with the same one share
    OnLoss on_loss = OnLoss::kOpen;
    base::Duration timeout = kDefaultStoreTimeout;  ///< for one answer
    bool operator==(const SharedStore&) const = default;
};
constexpr std::string_view to_string(SharedStore::OnLoss on_loss) {
    return on_loss == SharedStore::OnLoss::kOpen ? "fail_open" : "fail_closed";
}
struct Budgets {
    std::optional<TokenWindow> overall, per_key;
    std::map<std::string, TokenWindow> routes;  ///< by the path of the request
    std::optional<SharedStore> shared = {};     ///< absent: the counts are this process's
};

/// How many tokens one answer may have.
struct OutputLimits {
    struct Step {
        std::int64_t users =
            0;  ///< answers running and waiting, this one included, from which on it holds
        std::int64_t max_tokens = 0;
    };
    std::optional<std::int64_t> max_tokens;
    std::vector<Step> by_load;  ///< ascending users
    std::int64_t floor = kDefaultOutputFloor;
    bool any() const { return max_tokens || !by_load.empty(); }
};

/// What is asked for at a path that is not known (request_head.h) and could be an answer.
enum class OtherPaths {
    kRefuse,
    kRelay,  ///< with deadlines and honest framing, but without queue, budgets and limits on output
};

struct Policy {
    std::vector<UpstreamOptions> upstreams;
    serving::Access access = {};  ///< who may ask; with keys, no client's own key goes on
    Deadlines deadlines;
    QueueLimits queue;
    OutputLimits output;
    Budgets budgets;
    std::optional<base::Duration>
        heartbeat;  ///< silence towards a waiting stream after which a comment is sent
    base::Duration drain = kDefaultDrain;
    double affinity = kDefaultAffinity;
    OtherPaths other_paths = OtherPaths::kRefuse;
    bool retry = true;          ///< at another upstream, before the first byte
    bool continuation = false;  ///< at another upstream, behind what was delivered (continuation.h)
};

}  // namespace fullstop::gateway
