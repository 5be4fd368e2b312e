// Memory as the kernel counts it: of one process (resident), of the machine (available to new work
// without swapping).
#pragma once

#include <optional>
#include <string_view>

#include "base/units.h"

namespace fullstop::adapters::asio {

/// Resident memory of a process; nothing when it is gone or not ours to see.
std::optional<base::Bytes> resident_memory(int pid);
/// MemAvailable of the machine.
std::optional<base::Bytes> available_memory();

/// The two readings, from the text of /proc/PID/statm and /proc/meminfo.
std::optional<base::Bytes> read_statm(std::string_view text, std::int64_t page_bytes);
std::optional<base::Bytes> read_meminfo(std::string_view text);

}  // namespace fullstop::adapters::asio
