// Readers of JSON hand out one of three kinds of number.
#include "schema/integer.h"

#include <cmath>

namespace fullstop::schema {

namespace json = boost::json;

std::optional<std::int64_t> integer(const json::value& value) {
    if (value.is_int64()) return value.get_int64();
    if (value.is_uint64() && value.get_uint64() <= INT64_MAX)
        return static_cast<std::int64_t>(value.get_uint64());
    if (value.is_double() && std::trunc(value.get_double()) == value.get_double() &&
        std::abs(value.get_double()) < 9e15)
        return static_cast<std::int64_t>(value.get_double());
    return std::nullopt;
}

}  // namespace fullstop::schema
