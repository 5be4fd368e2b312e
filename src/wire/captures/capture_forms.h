// The two JSON forms of a capture file, behind capture.h.
#pragma once

#include <string_view>
#include <vector>

#include "answer/record.h"
#include "base/result.h"

namespace fullstop::wire {

/// Whether the file's first line is that of fullstop's own capture.
bool is_own_capture(std::string_view file);
base::Result<std::vector<answer::Record>> read_own_captures(std::string_view file);

/// HAR 1.2. Only exchanges that asked for an answer are read: POSTs whose body is a request of a
/// known dialect.
bool is_har(std::string_view file);
base::Result<std::vector<answer::Record>> read_har(std::string_view file);

/// Moments that a file does not hold must not look like zeros.
void forget_moments(answer::Record& record);

}  // namespace fullstop::wire
