// A policy in plain words: what can cut, shorten, delay or refuse an answer here, and nothing else.
#pragma once

#include <string>

#include "cli/gateway/gateway_config.h"

namespace fullstop::cli {

/// Several lines; what is not set is said to be so.
std::string policy_text(const GatewaySettings& settings);
/// One line, for the start.
std::string policy_line(const gateway::Policy& policy);

}  // namespace fullstop::cli
