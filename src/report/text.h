// Text for documents and terminals: measured in columns, wrapped, and numbers get the digits a
// reader needs. What others wrote is made harmless by base::printable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace fullstop::report {

/// Columns a terminal needs for valid UTF-8: wide East Asian characters and emoji two, combining
/// marks none.
std::size_t columns(std::string_view text);

/// Padded with spaces to `width` columns; longer text stays.
std::string pad_left(std::string_view text, std::size_t width);
std::string pad_right(std::string_view text, std::size_t width);

/// `text` in lines of at most `width` columns, the first after `first`, the others after `rest`,
/// each ended by '\n'. Words longer than a line are cut. `text` is passed through base::printable.
std::string wrap(std::string_view text, std::size_t width, std::string_view first,
                 std::string_view rest);

/// Three significant digits at most, no exponent below a million: 0.0123, 1.23, 12.3, 123, 12345.
std::string short_number(double value);
/// "1.5 GB", decimal units, as memory is advertised.
std::string short_bytes(double bytes);
/// "2 min 5 s", "12 s", "340 ms".
std::string short_time(base::Duration time);
/// RFC 3339 in UTC with milliseconds, and back.
std::string rfc3339(base::WallTime time);
std::optional<base::WallTime> parse_rfc3339(std::string_view text);

/// "1 user", "8 users".
std::string counted(std::int64_t count, std::string_view singular);

}  // namespace fullstop::report
