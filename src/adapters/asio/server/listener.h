// A listening socket, and how many clients the process can serve on it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adapters/asio/server/server.h"
#include "base/result.h"

namespace fullstop::adapters::asio {

/// A listening socket, or the reason why not.
base::Result<int> open_listener(const ServerOptions& options);
std::uint16_t port_of(int fd);
/// Each client may need a descriptor towards a server as well.
std::size_t connections_for_descriptors();

}  // namespace fullstop::adapters::asio
