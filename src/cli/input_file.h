// A file that the user named, whole in memory, within a limit.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace fullstop::cli {

/// A configuration of a thousand servers is below 1 MiB.
inline constexpr std::size_t kMaxConfigBytes = 4 * 1024 * 1024;

/// Errors (usage) name the file and the reason; `kind` says what would have been smaller: "run
/// document". `hint` is the next step.
base::Result<std::string> read_input(const std::filesystem::path& file, std::size_t most_bytes,
                                     const std::string& kind, const std::string& hint);

}  // namespace fullstop::cli
