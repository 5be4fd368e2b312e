// The flags of `fullstop gateway`, declared, and checked together with the configuration file, which they override.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/gateway_config.h"

namespace CLI {
class App;
}

namespace fullstop::cli {

/// As the user wrote them; absent: as in the file, else the default.
struct GatewayWords {
    std::vector<std::string> upstreams;
    std::optional<std::string> listen, queue_wait, first_token, idle, total, heartbeat, drain;
    std::optional<std::int64_t> max_concurrency, max_queue;
    std::string config, store, tls_certificate, tls_key;
    std::optional<double> tokens_per_second;
    bool no_observe = false, check = false, explain_deadlines = false, quiet = false;
};

void declare_gateway(CLI::App& app, GatewayWords& words);
/// `config_text`: the content of --config, if given.
base::Result<GatewaySettings> read_gateway(const GatewayWords& words, const std::optional<std::string>& config_text);

}  // namespace fullstop::cli
