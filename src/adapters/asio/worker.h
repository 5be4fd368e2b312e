// Work that blocks (a model's decode step) on a thread of its own, and its results back on the
// loop's thread.
#pragma once

#include <functional>
#include <memory>

#include "adapters/asio/loop.h"

namespace fullstop::adapters::asio {

class Worker {
public:
    explicit Worker(Loop& loop);
    /// Waits for the step that runs; steps that wait are dropped, and no result comes any more.
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// `step` runs on the worker's thread, one after the other in the order of the calls; then
    /// `done` on the loop's. The caller hands over one step at a time and so bounds the queue.
    void run(std::function<void()> step, std::function<void()> done);

private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace fullstop::adapters::asio
