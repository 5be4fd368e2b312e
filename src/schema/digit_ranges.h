// The decimal numbers between two bounds as a grammar.
#pragma once

#include <cstdint>
#include <string>

namespace fullstop::schema {

/// All whole numbers from `low` to `high` (both included, low <= high, neither the least
/// std::int64_t), without leading zeros and without "-0". In GBNF, without brackets around it.
std::string digit_ranges(std::int64_t low, std::int64_t high);
/// The same with numbers between them, of at most 16 digits behind the point.
std::string decimal_ranges(std::int64_t low, std::int64_t high);

}  // namespace fullstop::schema
