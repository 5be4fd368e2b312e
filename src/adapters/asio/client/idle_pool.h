// Connections to servers that carried a whole exchange and may carry another one, for parts that
// ask for it (net::Connect::reuse). Newest first, so that the others come to their time limit, but
// none that has just become idle: its server may be about to close it. A kept connection is looked
// at when it is wanted: one whose server has closed it, or said something unasked, is dropped.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "adapters/asio/channel.h"
#include "adapters/asio/descriptor.h"
#include "net/event.h"

namespace fullstop::adapters::asio {

class IdlePool {
public:
    struct Kept {
        Descriptor socket;
        std::unique_ptr<Channel> channel;
    };
    explicit IdlePool(const Executor& executor) : timer_(executor) {}
    IdlePool(const IdlePool&) = delete;
    IdlePool& operator=(const IdlePool&) = delete;

    /// With kMaxIdleConnections kept already, the oldest is closed.
    void put(const net::Endpoint& endpoint, Kept kept);
    std::optional<Kept> take(const net::Endpoint& endpoint);
    std::size_t size() const { return entries_.size(); }

private:
    struct Entry {
        net::Endpoint endpoint;
        Kept kept;
        base::Instant since;
    };
    void arm();
    void sweep();
    void drop(const std::deque<Entry>::iterator& at);

    std::deque<Entry> entries_;  ///< oldest first
    SteadyTimer timer_;
    bool armed_ = false;
    std::shared_ptr<char> alive_ = std::make_shared<char>();  ///< the timer's handler checks it
};

}  // namespace fullstop::adapters::asio
