// Long computing that Ctrl-C ends early: it runs on a thread of its own and is told to stop, and
// what it has is kept.
#pragma once

#include <atomic>
#include <functional>

#include "base/time.h"

namespace fullstop::running {

/// Runs `work` to its end; `stop` becomes true at the first SIGINT or SIGTERM, and `work` then
/// returns soon. `tick` is called on the calling thread about every `interval` while it runs. True:
/// it was interrupted.
bool run_interruptibly(const std::function<void(const std::atomic<bool>& stop)>& work,
                       base::Duration interval, const std::function<void()>& tick);

}  // namespace fullstop::running
