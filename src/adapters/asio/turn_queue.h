// What follows from one event of the loop, done in order and in the same turn of it: hosts, servers
// and stores give each other work, and nobody is called while he is being called himself.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <utility>

namespace fullstop::adapters::asio {

/// One for each loop, on its thread.
class TurnQueue {
public:
    /// Somebody whom others give work to. He keeps it and says due(); take_turn() then does it.
    class Member {
    public:
        explicit Member(TurnQueue& queue) : queue_(queue) {}
        Member(const Member&) = delete;
        Member& operator=(const Member&) = delete;
        virtual void take_turn() = 0;

    protected:
        virtual ~Member() { queue_.leave(*this); }
        /// Behind what runs now, and before the loop looks at its sockets again; at once when
        /// nothing runs.
        void due();
        TurnQueue& queue() const { return queue_; }

    private:
        friend class TurnQueue;
        TurnQueue& queue_;
        bool due_ = false;
    };

    /// `later` runs its argument in a later turn of the loop: when kMaxTurnsInARow are done,
    /// sockets and timers come first.
    explicit TurnQueue(std::function<void(std::function<void()>)> later)
        : later_(std::move(later)) {}

    /// Does `work`, then everything that became due by it. Inside another run it is part of that.
    template <class Work>
    void run(const Work& work) {
        if (running_) return work();
        running_ = true;
        work();
        drain();
        running_ = false;
    }
    bool running() const { return running_; }

private:
    void drain();
    void leave(const Member& member) { std::erase(due_, &member); }

    std::function<void(std::function<void()>)> later_;
    std::deque<Member*> due_;
    bool running_ = false, continued_ = false;
};

}  // namespace fullstop::adapters::asio
