// The flags of `fullstop gateway`, declared and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "wire/request_text.h"

namespace CLI {
class App;
}

namespace fullstop::cli {

/// As the user wrote them.
struct GatewayWords {
    std::vector<std::string> upstreams;
    std::string listen = "127.0.0.1:8081", idle = "300s", drain = "30s", tls_certificate, tls_key;
    bool quiet = false;
};

struct GatewayFlags {
    wire::ServerUrl upstream;
    std::string host;
    std::uint16_t port = 0;
    std::optional<base::Duration> idle;  ///< absent: silence is not limited
    base::Duration drain{};
    std::string tls_certificate, tls_key;  ///< files; "": plain HTTP
    bool quiet = false;
};

void declare_gateway(CLI::App& app, GatewayWords& words);
base::Result<GatewayFlags> read_gateway(const GatewayWords& words);

}  // namespace fullstop::cli
