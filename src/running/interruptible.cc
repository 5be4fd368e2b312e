// The loop watches signals and the clock, the worker computes; they share two flags.
#include "running/interruptible.h"

#include "adapters/asio/loop.h"
#include "adapters/asio/worker.h"

namespace fullstop::running {

bool run_interruptibly(const std::function<void(const std::atomic<bool>& stop)>& work,
                       base::Duration interval, const std::function<void()>& tick) {
    adapters::asio::Loop loop;
    std::atomic<bool> stop = false;
    const auto watch = loop.watch_signals([&](int) { stop = true; });
    const auto ticker = loop.every(interval, [&](base::Instant) { tick(); });
    adapters::asio::Worker worker(loop);
    worker.run([&] { work(stop); }, [&] { loop.stop(); });
    loop.run();
    return stop;
}

}  // namespace fullstop::running
