// SHA-256 of a text, in lower-case hex: the identity of an answer's words in documents.
#pragma once

#include <string>
#include <string_view>

namespace fullstop::base {

std::string sha256_hex(std::string_view text);

}  // namespace fullstop::base
