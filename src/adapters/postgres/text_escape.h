// PostgreSQL takes only valid UTF-8 without zeros for a text, but servers send other bytes, and
// these are evidence. Whatever does not fit is written as DLE (U+0010) and two hex digits, and DLE
// itself likewise; any other text stays as it is.
#pragma once

#include <string>
#include <string_view>

namespace fullstop::adapters::postgres {

std::string escaped(std::string_view bytes);
/// Throws store::Unreadable on what `escaped` never makes.
std::string unescaped(std::string_view text);

}  // namespace fullstop::adapters::postgres
