// JSON values as numbers and flags.

#include "engine/openai/request_readers.h"

#include <fmt/format.h>

#include <cmath>

namespace fullstop::engine {

namespace json = boost::json;

std::optional<double> number(const json::value& value) {
    if (!value.is_number()) return std::nullopt;
    return value.to_number<double>();
}

std::string read_number(const json::value& value, double low, double high, double& out,
                        std::string_view range) {
    const auto given = number(value);
    if (!given || !std::isfinite(*given) || *given < low || *given > high)
        return fmt::format("is a number {}", range);
    out = *given;
    return {};
}

std::string read_flag(const json::value& value, bool& out) {
    if (!value.is_bool()) return "is true or false";
    out = value.get_bool();
    return {};
}

}  // namespace fullstop::engine
