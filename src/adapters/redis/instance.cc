// The system's randomness: names made of the time would meet when many gateways start together.
#include "adapters/redis/instance.h"

#include <fmt/format.h>

#include <random>

namespace fullstop::adapters::redis {

std::string random_instance() {
    std::random_device device;
    std::string out;
    for (int i = 0; i < 4; ++i) out += fmt::format("{:08x}", static_cast<std::uint32_t>(device()));
    return out;
}

}  // namespace fullstop::adapters::redis
