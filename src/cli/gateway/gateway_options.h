// The flags of `fullstop gateway`, declared, and checked together with the configuration file,
// which they override.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/gateway/gateway_config.h"

namespace CLI {
class App;
}

namespace fullstop::cli {

/// As the user wrote them; absent: as in the file, else the default.
struct GatewayFlags {
    std::vector<std::string> upstreams;
    std::optional<std::string> listen, queue_wait, first_token, idle, total, heartbeat, drain;
    std::optional<std::int64_t> max_concurrency, max_queue;
    std::string config, store, tls_certificate, tls_key, api_key_env;
    AccessFlags access;
    std::optional<double> tokens_per_second;
    bool no_observe = false, check = false, explain_deadlines = false, quiet = false;
};

void declare_gateway(CLI::App& app, GatewayFlags& flags);
/// `config_text`: the content of --config, if given.
base::Result<GatewaySettings> read_gateway(const GatewayFlags& flags,
                                           const std::optional<std::string>& config_text);

/// The keys of the upstreams that name one. Errors: a variable is not set, or no key.
base::Result<void> read_api_keys(
    gateway::Policy& policy,
    const std::function<std::optional<std::string>(const std::string& name)>& env);

}  // namespace fullstop::cli
