// Which upstream a request goes to: the least busy of those that may have it, where the one that
// has served the same session or prefix may be somewhat busier. And the upstreams themselves,
// through changes of the configuration.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "gateway/placement/upstream.h"

namespace fullstop::gateway {

using UpstreamId = std::uint64_t;

class Upstreams {
public:
    /// Upstreams of the same URL stay the same, with what runs on them; those that are no longer
    /// named get no new requests.
    void configure(const std::vector<UpstreamOptions>& options);

    Upstream* find(UpstreamId id);
    const std::map<UpstreamId, std::unique_ptr<Upstream>>& all() const { return all_; }

    /// Those that may ever have this work: of its model, not draining, not tried before.
    std::vector<UpstreamId> eligible(const Work& work, const std::set<UpstreamId>& tried) const;

    /// The best of `among` now, without those in `claimed`. With `counted` it must have room.
    struct Choice {
        UpstreamId id = 0;
        std::int64_t need = 0;
    };
    std::optional<Choice> choose(const std::vector<UpstreamId>& among, const Work& work,
                                 std::optional<std::int64_t> max_tokens,
                                 const std::set<UpstreamId>& claimed, double affinity,
                                 base::Instant now) const;

    /// The earliest moment at which one that is left alone may be tried again.
    std::optional<base::Instant> next_trial(base::Instant now) const;
    /// Answers at once of all that take new requests; absent when one of them is not limited.
    std::optional<std::int64_t> slots() const;
    std::int64_t running() const;
    void sweep();  ///< forgets the retired ones that run nothing

private:
    std::map<UpstreamId, std::unique_ptr<Upstream>> all_;
    UpstreamId next_ = 1;
};

}  // namespace fullstop::gateway
