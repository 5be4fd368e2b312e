// One thread's event loop: what client host, server, child processes and workers share. It owns the
// clock, the signals, and periodic calls (a live display). No Boost type is visible here.
//
// Everything is called on the thread in run(), except post(), which any thread may call.
#pragma once

#include <functional>
#include <memory>

#include "adapters/asio/turn_queue.h"
#include "base/time.h"

namespace boost::asio {
class io_context;
}

namespace fullstop::adapters::asio {

class Loop {
public:
    Loop();
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    const base::Clock& clock() const;
    boost::asio::io_context& context();

    TurnQueue& turns();

    /// From any thread: `work` runs on the loop's thread, in the order of the calls.
    void post(std::function<void()> work);

    /// While it lives, its function is called once per interval; calls missed by a busy loop are
    /// dropped, not made up.
    class Ticker {
    public:
        Ticker() = default;

    private:
        friend class Loop;
        std::shared_ptr<void> alive_;
    };
    [[nodiscard]] Ticker every(base::Duration interval, std::function<void(base::Instant)> call);

    /// SIGINT and SIGTERM go to `call` while the watch lives, instead of ending the program.
    /// `interrupts` counts the SIGINTs of this watch so far: a second one means "at once". Without
    /// a descriptor for it, signals keep their default.
    class SignalWatch {
    public:
        SignalWatch() = default;

    private:
        friend class Loop;
        std::shared_ptr<void> alive_;
    };
    [[nodiscard]] SignalWatch watch_signals(std::function<void(int interrupts)> call);

    /// Runs until stop(). May be called again afterwards; never from inside.
    void run();
    void stop();

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Raises the soft limit of open files to the hard one: a probe of 1024 connections needs more than
/// the usual 1024.
void raise_open_file_limit();

}  // namespace fullstop::adapters::asio
