// How much of what was sent has reached the peer's kernel?
#pragma once

#include <cstdint>

namespace fullstop::adapters::asio {

/// Bytes of ours that the peer's kernel has acknowledged so far. What was not acknowledged, no
/// server has read.
std::uint64_t acknowledged_bytes(int fd);

}  // namespace fullstop::adapters::asio
