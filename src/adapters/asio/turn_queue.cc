// Each member stands in the queue once, however much work he was given.
#include "adapters/asio/turn_queue.h"

#include "adapters/asio/limits.h"

namespace fullstop::adapters::asio {

void TurnQueue::Member::due() {
    if (!std::exchange(due_, true)) queue_.due_.push_back(this);
    queue_.run([] {});
}

void TurnQueue::drain() {
    for (int turns = 0; !due_.empty(); ++turns) {
        if (turns == kMaxTurnsInARow) {
            if (!std::exchange(continued_, true))
                later_([this] {
                    continued_ = false;
                    run([] {});
                });
            return;
        }
        Member* next = due_.front();
        due_.pop_front();
        next->due_ = false;
        next->take_turn();
    }
}

}  // namespace fullstop::adapters::asio
