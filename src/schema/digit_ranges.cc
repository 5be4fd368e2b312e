// Numbers of one length between two bounds: their first digit is that of the lower bound (then the
// rest is not below its rest), one between (then the rest is free), or that of the upper bound.
#include "schema/digit_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace fullstop::schema {
namespace {

void add(std::string& out, std::string_view alternative) {
    if (!out.empty()) out += " | ";
    out += alternative;
}

std::string digit(char low, char high) {
    return low == high ? fmt::format("[{}]", low) : fmt::format("[{}-{}]", low, high);
}
std::string free_digits(std::size_t count) {
    return count == 0 ? "" : fmt::format(" [0-9]{{{}}}", count);
}

/// `low` and `high` have the same length, at least 1.
std::string same_length(std::string_view low, std::string_view high) {
    const std::size_t rest = low.size() - 1;
    const std::string zeros(rest, '0'), nines(rest, '9');
    char first = low.front(), last = high.front();
    if (first == last && rest > 0)
        return fmt::format("{} ({})", digit(first, first),
                           same_length(low.substr(1), high.substr(1)));
    const bool cut_low = low.substr(1) != zeros, cut_high = high.substr(1) != nines;
    std::string out;
    if (cut_low)
        add(out, fmt::format("{} ({})", digit(first, first), same_length(low.substr(1), nines))),
            ++first;
    if (cut_high) --last;
    if (first <= last) add(out, digit(first, last) + free_digits(rest));
    if (cut_high)
        add(out, fmt::format("{} ({})", digit(high.front(), high.front()),
                             same_length(zeros, high.substr(1))));
    return out;
}

/// Neither is negative.
std::string not_negative(std::int64_t low, std::int64_t high) {
    std::string out;
    if (low == 0) add(out, "[0]"), low = 1;
    if (low > high) return out;
    const std::string from = std::to_string(low), to = std::to_string(high);
    if (from.size() == to.size()) return add(out, same_length(from, to)), out;
    add(out, same_length(from, std::string(from.size(), '9')));
    if (to.size() - from.size() > 1)
        add(out, fmt::format("[1-9] [0-9]{{{},{}}}", from.size(), to.size() - 2));
    add(out, same_length("1" + std::string(to.size() - 1, '0'), to));
    return out;
}

}  // namespace

std::string digit_ranges(std::int64_t low, std::int64_t high) {
    std::string out;
    if (low < 0) add(out, fmt::format("\"-\" ({})", not_negative(high < 0 ? -high : 1, -low)));
    if (high >= 0) add(out, not_negative(low < 0 ? 0 : low, high));
    return out;
}

/// With digits behind the point a number lies farther from zero than its whole part, by less than
/// one.
std::string decimal_ranges(std::int64_t low, std::int64_t high) {
    constexpr std::string_view kFraction = "\".\" [0-9]{1,16}";
    std::string out = digit_ranges(low, high);
    const std::int64_t from = std::max<std::int64_t>(low, 0),
                       negative_from = std::max<std::int64_t>(-high, 0);
    if (from < high) add(out, fmt::format("({}) {}", not_negative(from, high - 1), kFraction));
    if (negative_from < -low)
        add(out, fmt::format("\"-\" ({}) {}", not_negative(negative_from, -low - 1), kFraction));
    return out;
}

}  // namespace fullstop::schema
