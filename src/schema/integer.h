// A JSON number as a whole number, however it is written: 3, 3.0 and 3e0 are the same.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>

namespace fullstop::schema {

/// Absent: it is none, or larger than a double or 64 bits hold exactly.
std::optional<std::int64_t> integer(const boost::json::value& value);

}  // namespace fullstop::schema
