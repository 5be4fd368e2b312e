// Base64 (RFC 4648) for capture bytes that are no UTF-8 and so no JSON string.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fullstop::wire {

std::string base64_encode(std::string_view bytes);
/// Absent when `text` is not base64. Missing padding and line breaks are accepted.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace fullstop::wire
