// The Asio types of this folder, bound to the concrete executor: the type-erased one costs an
// allocation per wait. Internal: only .cc files and internal headers include it.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <chrono>

#include "base/time.h"

namespace fullstop::adapters::asio {

using Executor = ::boost::asio::io_context::executor_type;
using Descriptor = ::boost::asio::posix::basic_stream_descriptor<Executor>;
using SteadyTimer = ::boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, ::boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;
using ErrorCode = ::boost::system::error_code;

/// libstdc++'s steady_clock is CLOCK_MONOTONIC, as base::Monotonic is in this host.
inline std::chrono::steady_clock::time_point steady(base::Instant at) {
    return std::chrono::steady_clock::time_point(at.time_since_epoch());
}

}  // namespace fullstop::adapters::asio
