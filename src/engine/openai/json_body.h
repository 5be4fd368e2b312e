// A request body as a JSON object, or one sentence that says what is wrong with it and where.
#pragma once

#include <boost/json/object.hpp>
#include <expected>
#include <string>
#include <string_view>

namespace fullstop::engine {

struct BadBody {
    std::string message;
    std::string key;  ///< the member that is at fault; "" when the body as a whole is
};

/// A key that stands twice in one object is refused: one of its values would be ignored.
std::expected<boost::json::object, BadBody> parse_body(std::string_view body);

}  // namespace fullstop::engine
