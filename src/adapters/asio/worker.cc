// One thread, one queue.
#include "adapters/asio/worker.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace fullstop::adapters::asio {

struct Worker::State {
    struct Task {
        std::function<void()> step, done;
    };
    std::mutex lock;
    std::condition_variable changed;
    std::deque<Task> waiting;
    bool over = false;
    std::thread thread;
};

Worker::Worker(Loop& loop) : state_(std::make_shared<State>()) {
    state_->thread = std::thread([&loop, state = state_.get(), watch = std::weak_ptr(state_)] {
        std::unique_lock held(state->lock);
        while (true) {
            state->changed.wait(held, [&] { return state->over || !state->waiting.empty(); });
            if (state->over) return;
            State::Task task = std::move(state->waiting.front());
            state->waiting.pop_front();
            held.unlock();
            task.step();
            loop.post([watch, done = std::move(task.done)] {
                if (!watch.expired()) done();
            });
            held.lock();
        }
    });
}

Worker::~Worker() {
    {
        const std::lock_guard held(state_->lock);
        state_->over = true;
    }
    state_->changed.notify_one();
    state_->thread.join();
}

void Worker::run(std::function<void()> step, std::function<void()> done) {
    {
        const std::lock_guard held(state_->lock);
        state_->waiting.push_back({std::move(step), std::move(done)});
    }
    state_->changed.notify_one();
}

}  // namespace fullstop::adapters::asio
