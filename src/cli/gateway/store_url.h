// The address of a store of shared budgets: redis://[[user]:password@]HOST[:PORT][/DATABASE], with
// TLS rediss://.
#pragma once

#include <string_view>

#include "base/result.h"
#include "gateway/policy.h"

namespace fullstop::cli {

/// Errors: usage; they never repeat the text, which may hold a password.
base::Result<gateway::SharedStore> parse_store_url(std::string_view text);

}  // namespace fullstop::cli
