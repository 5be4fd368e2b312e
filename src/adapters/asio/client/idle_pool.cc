// A queue in order of age; few enough that a search through it costs less than a system call.
#include "adapters/asio/client/idle_pool.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "adapters/asio/clock.h"
#include "adapters/asio/limits.h"

namespace fullstop::adapters::asio {
namespace {

/// Open, and silent as a server without a request is.
bool is_quiet(IdlePool::Kept& kept) {
    if (kept.channel->holds_bytes()) return false;
    char byte = 0;
    return ::recv(kept.socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

void IdlePool::put(const net::Endpoint& endpoint, Kept kept) {
    if (entries_.size() >= kMaxIdleConnections) drop(entries_.begin());
    entries_.push_back(
        {.endpoint = endpoint, .kept = std::move(kept), .since = SystemClock().now()});
    arm();
}

std::optional<IdlePool::Kept> IdlePool::take(const net::Endpoint& endpoint) {
    const base::Instant now = SystemClock().now();
    const auto usable = [&](const Entry& entry) {
        return entry.endpoint == endpoint && now - entry.since >= kReuseAfter;
    };
    while (true) {
        const auto found = std::find_if(entries_.rbegin(), entries_.rend(), usable);
        if (found == entries_.rend()) return std::nullopt;
        const auto at = std::prev(found.base());
        if (is_quiet(at->kept) && now - at->since < kIdleUpstreamTimeout) {
            Kept kept = std::move(at->kept);
            entries_.erase(at);
            return kept;
        }
        drop(at);
    }
}

void IdlePool::drop(const std::deque<Entry>::iterator& at) {
    at->kept.channel->say_goodbye();
    entries_.erase(at);
}

void IdlePool::arm() {
    if (entries_.empty() || std::exchange(armed_, true)) return;
    timer_.expires_at(steady(entries_.front().since + kIdleUpstreamTimeout));
    timer_.async_wait([this, watch = std::weak_ptr(alive_)](const ErrorCode& error) {
        if (!error && !watch.expired()) sweep();
    });
}

void IdlePool::sweep() {
    armed_ = false;
    const base::Instant now = SystemClock().now();
    while (!entries_.empty() && now - entries_.front().since >= kIdleUpstreamTimeout)
        drop(entries_.begin());
    arm();
}

}  // namespace fullstop::adapters::asio
