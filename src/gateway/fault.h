// What the gateway reports when a bug in it ends an exchange: enough to reproduce it, and no key.
#pragma once

#include <cstddef>
#include <string>

namespace fullstop::gateway {

struct Fault {
    std::string what;   ///< of the exception
    std::string bytes;  ///< the first of those at which it happened
    std::string request_id = {}, method = {}, path = {};
    std::size_t request_bytes = 0, relayed_bytes = 0;
};

/// One line for standard error, whatever the bytes are.
std::string fault_line(const Fault& fault);

}  // namespace fullstop::gateway
