// --listen HOST:PORT, as `serve` and `gateway` take it and show it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

namespace fullstop::cli {

/// Host (an IPv6 address without its brackets) and port; port 0 lets the system pick. A usage error
/// otherwise.
base::Result<std::pair<std::string, std::uint16_t>> parse_listen_address(const std::string& text);
/// A host as it stands in a URL.
std::string shown_host(const std::string& host);

}  // namespace fullstop::cli
