// Widths come from the main blocks of Unicode's East Asian Width, which suffices for
// keeping columns straight and leaves rare scripts out.
#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include "base/printable.h"
#include "base/utf8.h"

namespace fullstop::report {
namespace {

struct Glyph {
    char32_t code = 0;
    std::size_t size = 0;
};

/// The character at the beginning of `text`, which is not empty; broken bytes are as wide as what
/// stands for them.
Glyph first_glyph(std::string_view text) {
    const auto [shape, size] = base::front_character(text);
    return {shape == base::CharacterShape::kWhole ? base::code_of(text.substr(0, size)) : U'\uFFFD',
            size};
}

std::size_t width_of(char32_t code) {
    struct Range {
        char32_t first, last;
    };
    constexpr std::array<Range, 3> kNone = {
        Range{0x300, 0x36F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}};
    constexpr std::array<Range, 9> kWide = {
        Range{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
        {0xF900, 0xFAFF},      {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
        {0xFFE0, 0xFFE6},      {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
    const auto within = [code](const Range& range) {
        return code >= range.first && code <= range.last;
    };
    if (std::ranges::any_of(kNone, within)) return 0;
    return std::ranges::any_of(kWide, within) ? 2 : 1;
}

/// Bytes of `text` that fit into `width` columns, at least one character.
std::size_t fitting(std::string_view text, std::size_t width) {
    std::size_t bytes = 0, used = 0;
    while (bytes < text.size()) {
        const Glyph glyph = first_glyph(text.substr(bytes));
        used += width_of(glyph.code);
        if (used > width && bytes > 0) break;
        bytes += glyph.size;
    }
    return bytes;
}

}  // namespace

std::size_t columns(std::string_view text) {
    std::size_t sum = 0;
    while (!text.empty()) {
        const Glyph glyph = first_glyph(text);
        sum += width_of(glyph.code);
        text.remove_prefix(glyph.size);
    }
    return sum;
}

std::string pad_left(std::string_view text, std::size_t width) {
    const std::size_t used = columns(text);
    return std::string(used < width ? width - used : 0, ' ').append(text);
}
std::string pad_right(std::string_view text, std::size_t width) {
    const std::size_t used = columns(text);
    return std::string(text).append(used < width ? width - used : 0, ' ');
}

std::string wrap(std::string_view text, std::size_t width, std::string_view first,
                 std::string_view rest) {
    const std::string safe = base::printable(text);
    std::string lines, line(first);
    std::string_view left = safe;
    bool empty = true;  // nothing on this line yet
    while (!left.empty()) {
        if (left.front() == ' ') {
            left.remove_prefix(1);
            continue;
        }
        std::string_view word = left.substr(0, left.find(' '));
        const std::size_t used = columns(line) + (empty ? 0 : 1);
        if (used + columns(word) > width) {
            if (!empty) {
                lines += line + '\n';
                line = rest, empty = true;
                continue;
            }
            word = word.substr(0, fitting(word, width > used ? width - used : 1));
        }
        if (!empty) line += ' ';
        line += word;
        empty = false;
        left.remove_prefix(word.size());
    }
    return lines + line + '\n';
}

std::string short_number(double value) {
    if (!std::isfinite(value)) return "-";
    const double size = std::abs(value);
    if (size >= 1e6) return fmt::format("{:.3g}", value);
    if (size >= 100 || size == 0) return fmt::format("{:.0f}", value);
    std::string text = fmt::format("{:.{}f}", value,
                                   size >= 10     ? 1
                                   : size >= 1    ? 2
                                   : size >= 0.01 ? 3
                                                  : 6);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
}

std::string short_bytes(double bytes) {
    constexpr std::array<std::string_view, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
    std::size_t unit = 0;
    while (std::abs(bytes) >= 1000 && unit + 1 < kUnits.size()) bytes /= 1000, ++unit;
    return fmt::format("{} {}", short_number(bytes), kUnits[unit]);
}

std::string short_time(base::Duration time) {
    const double seconds = base::to_seconds(time);
    if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1000);
    if (seconds < 60) return fmt::format("{} s", short_number(seconds));
    const auto whole = static_cast<std::int64_t>(std::llround(seconds));
    if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
    return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string rfc3339(base::WallTime time) {
    using namespace std::chrono;
    const sys_time<milliseconds> moment(floor<milliseconds>(nanoseconds(time.unix_ns)));
    const auto day = floor<days>(moment);
    const year_month_day date(day);
    const hh_mm_ss clock(moment - day);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                       clock.subseconds().count());
}

std::optional<base::WallTime> parse_rfc3339(std::string_view text) {
    using namespace std::chrono;
    constexpr std::string_view kShape = "0000-00-00T00:00:00";
    if (text.size() < kShape.size() + 1 || text.back() != 'Z') return std::nullopt;
    for (std::size_t i = 0; i < kShape.size(); ++i)
        if (kShape[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != kShape[i])
            return std::nullopt;
    const auto number = [text](std::size_t at, std::size_t size) {
        int value = 0;
        std::from_chars(text.data() + at, text.data() + at + size, value);
        return value;
    };
    std::string_view fraction = text.substr(kShape.size(), text.size() - kShape.size() - 1);
    if (!fraction.empty() &&
        (fraction.front() != '.' || fraction.size() < 2 ||
         fraction.find_first_not_of("0123456789", 1) != std::string_view::npos))
        return std::nullopt;
    std::string nanos(fraction.empty() ? "" : fraction.substr(1, 9));
    nanos.resize(9, '0');
    std::int64_t below = 0;
    std::from_chars(nanos.data(), nanos.data() + nanos.size(), below);
    const year_month_day date(year(number(0, 4)), month(static_cast<unsigned>(number(5, 2))),
                              day(static_cast<unsigned>(number(8, 2))));
    if (!date.ok() || number(11, 2) > 23 || number(14, 2) > 59 || number(17, 2) > 60)
        return std::nullopt;
    const seconds whole = sys_days(date).time_since_epoch() + hours(number(11, 2)) +
                          minutes(number(14, 2)) + seconds(number(17, 2));
    return base::WallTime{whole.count() * 1'000'000'000 + below};
}

std::string counted(std::int64_t count, std::string_view singular) {
    return fmt::format("{} {}{}", count, singular, count == 1 ? "" : "s");
}

}  // namespace fullstop::report
