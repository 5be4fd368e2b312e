// --store names a file or a database; from here on nobody needs to know which.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/world.h"
#include "store/store.h"

namespace fullstop::cli {

/// `given` as in --store; empty: the file in the user's state folder. Errors: usage, or unreachable
/// for a database that is not there.
base::Result<std::unique_ptr<store::Store>> open_store(const World& world, const std::string& given,
                                                       store::Access access);

}  // namespace fullstop::cli
