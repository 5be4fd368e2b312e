// The configuration of `fullstop gateway`, one TOML file: every key is known or an error that names
// its line. docs/gateway.toml shows all of them with their defaults and what each can do to an
// answer.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/access.h"
#include "gateway/policy.h"

namespace fullstop::cli {

struct GatewaySettings {
    std::string host = "127.0.0.1";
    std::uint16_t port = 8081;
    AccessFlags access =
        {};  ///< read into policy.access, as the keys of servers are, by whoever may touch files
    gateway::Policy policy{.upstreams = {},
                           .deadlines = {},
                           .queue = {},
                           .output = {},
                           .budgets = {},
                           .heartbeat = gateway::kDefaultHeartbeat};
};

/// Over the defaults. `keys`, if given: the full names of all keys that the tables in `text` may
/// have. `name` is the file's, for messages. Errors: usage.
base::Result<GatewaySettings> read_gateway_config(std::string_view text, const std::string& name,
                                                  std::set<std::string>* keys = nullptr);

}  // namespace fullstop::cli
