// Classes of service: an answer of a higher one goes first. The order is from high to low.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace fullstop::serving {

enum class Priority { kInteractive, kNormal, kBatch };
inline constexpr std::array kAllPriorities = {Priority::kInteractive, Priority::kNormal,
                                              Priority::kBatch};
inline constexpr std::size_t kPriorities = kAllPriorities.size();

constexpr std::string_view to_string(Priority priority) {
    constexpr std::array<std::string_view, kPriorities> kNames = {"interactive", "normal", "batch"};
    return kNames[static_cast<std::size_t>(priority)];
}

/// As a request or a configuration names it; absent: there is no such class.
constexpr std::optional<Priority> priority_of(std::string_view name) {
    for (const Priority each : kAllPriorities)
        if (to_string(each) == name) return each;
    return std::nullopt;
}

}  // namespace fullstop::serving
