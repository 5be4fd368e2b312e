// A JSON value as text that people can read and diff: short objects and lists on one line, twelve
// significant digits (nanoseconds in an hour), never NaN or infinity, always valid UTF-8.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

namespace fullstop::report {

std::string json_text(const boost::json::value& value);

}  // namespace fullstop::report
