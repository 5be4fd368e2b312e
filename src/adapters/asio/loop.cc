// The event loop, on one io_context.
#include "adapters/asio/loop.h"

#include <signal.h>
#include <sys/resource.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

#include "adapters/asio/clock.h"
#include "adapters/asio/descriptor.h"
#include "base/assert.h"

namespace fullstop::adapters::asio {
namespace {

using Context = ::boost::asio::io_context;

struct Ticking : std::enable_shared_from_this<Ticking> {
    Ticking(Context& context, base::Duration every, std::function<void(base::Instant)> function)
        : timer(context),
          interval(every),
          call(std::move(function)),
          next(std::chrono::steady_clock::now()) {}

    void arm() {
        const auto now = std::chrono::steady_clock::now();
        next += interval;
        if (next < now) next = now + interval;
        timer.expires_at(next);
        timer.async_wait([weak = weak_from_this()](const ::boost::system::error_code& error) {
            const auto self = weak.lock();
            if (error || !self) return;
            self->call(SystemClock().now());
            self->arm();
        });
    }

    SteadyTimer timer;
    base::Duration interval;
    std::function<void(base::Instant)> call;
    std::chrono::steady_clock::time_point next;
};

struct Watching : std::enable_shared_from_this<Watching> {
    Watching(Context& context, std::function<void(int)> function)
        : signals(context, SIGINT, SIGTERM), call(std::move(function)) {}

    void arm() {
        signals.async_wait(
            [weak = weak_from_this()](const ::boost::system::error_code& error, int signal) {
                const auto self = weak.lock();
                if (error || !self) return;
                if (signal == SIGINT) ++self->interrupts;
                self->arm();
                self->call(self->interrupts);
            });
    }

    ::boost::asio::basic_signal_set<Executor> signals;
    std::function<void(int)> call;
    int interrupts = 0;
};

}  // namespace

struct Loop::State {
    explicit State(Loop& loop)
        : turns([&loop](std::function<void()> work) { loop.post(std::move(work)); }) {}

    SystemClock clock;
    Context context{1};  // the hint: one thread runs it, so handlers skip the shared queue
    ::boost::asio::executor_work_guard<Executor> work{context.get_executor()};
    TurnQueue turns;
    bool running = false;
};

Loop::Loop() : state_(std::make_unique<State>(*this)) {}
Loop::~Loop() = default;

const base::Clock& Loop::clock() const { return state_->clock; }
::boost::asio::io_context& Loop::context() { return state_->context; }
TurnQueue& Loop::turns() { return state_->turns; }

void Loop::post(std::function<void()> work) {
    ::boost::asio::post(state_->context, std::move(work));
}

Loop::Ticker Loop::every(base::Duration interval, std::function<void(base::Instant)> call) {
    FULLSTOP_ASSERT(interval > base::Duration::zero(), "a ticker has an interval");
    auto ticking = std::make_shared<Ticking>(state_->context, interval, std::move(call));
    ticking->arm();
    Ticker ticker;
    ticker.alive_ = std::move(ticking);
    return ticker;
}

Loop::SignalWatch Loop::watch_signals(std::function<void(int)> call) {
    SignalWatch watch;
    try {
        auto watching = std::make_shared<Watching>(state_->context, std::move(call));
        watching->arm();
        watch.alive_ = std::move(watching);
    } catch (const ::boost::system::system_error&) {
        // No descriptor left for the signal pipe: Ctrl-C then ends the program as if nobody
        // watched.
    }
    return watch;
}

void Loop::run() {
    FULLSTOP_ASSERT(!state_->running, "a loop is not run from inside itself");
    state_->running = true;
    state_->context.restart();
    state_->context.run();
    state_->running = false;
}

void Loop::stop() { state_->context.stop(); }

void raise_open_file_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace fullstop::adapters::asio
