// A mistyped word gets the nearest known one: of the command line and of configuration files.
#pragma once

#include <string>
#include <vector>

namespace fullstop::cli {

/// The known word that differs from `word` by at most two letters; "" when there is none.
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

}  // namespace fullstop::cli
