// Boost.JSON prints 0.7 as 7E-1 and everything on one line; hence a printer of our own.
#include "report/json/json_text.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdint>

#include "base/printable.h"
#include "base/utf8.h"

namespace fullstop::report {
namespace {

namespace json = boost::json;
constexpr std::size_t kLineWidth = 140;  ///< an object or list up to this long stays on its line

/// A JSON string in which nothing drives a terminal: what is not printable is escaped, which loses
/// nothing.
std::string quoted(json::string_view text) {
    const std::string valid = base::valid_utf8({text.data(), text.size()});
    const std::string serialized =
        json::serialize(json::value(json::string_view(valid.data(), valid.size())));
    std::string out;
    for (std::string_view rest = serialized; !rest.empty();) {
        const std::string_view character = rest.substr(0, base::front_character(rest).second);
        const auto code = static_cast<std::uint32_t>(base::code_of(character));
        if (base::is_printable(code))
            out += character;
        else if (code < 0x10000)
            out += fmt::format("\\u{:04x}", code);
        else
            out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                               0xDC00 + (code & 0x3FF));
        rest.remove_prefix(character.size());
    }
    return out;
}

std::string scalar(const json::value& value) {
    if (value.is_double())
        return std::isfinite(value.get_double()) ? fmt::format("{:.12g}", value.get_double())
                                                 : "null";
    if (value.is_string()) return quoted(value.get_string());
    return json::serialize(value);
}

/// On one line; gives up (empty) beyond the width, so that large documents stay linear.
std::string compact(const json::value& value, std::size_t width) {
    if (!value.is_object() && !value.is_array()) return scalar(value);
    const bool object = value.is_object();
    std::string line(1, object ? '{' : '[');
    const auto add = [&](const std::string& part) {
        if (line.size() > 1) line += ", ";
        line += part;
        return line.size() <= width;
    };
    if (object) {
        for (const auto& member : value.get_object()) {
            const std::string inner = compact(member.value(), width);
            if (inner.empty() || !add(quoted(member.key()) + ": " + inner)) return "";
        }
    } else {
        for (const json::value& element : value.get_array()) {
            const std::string inner = compact(element, width);
            if (inner.empty() || !add(inner)) return "";
        }
    }
    return line + (object ? '}' : ']');
}

void print(const json::value& value, std::size_t indent, std::string& out) {
    if (const std::string line = compact(value, kLineWidth); !line.empty()) {
        out += line;
        return;
    }
    const bool object = value.is_object();
    const std::string margin(indent + 2, ' ');
    out += object ? '{' : '[';
    const char* separator = "\n";
    if (object) {
        for (const auto& member : value.get_object()) {
            out += separator + margin + quoted(member.key()) + ": ";
            print(member.value(), indent + 2, out);
            separator = ",\n";
        }
    } else {
        for (const json::value& element : value.get_array()) {
            out += separator + margin;
            print(element, indent + 2, out);
            separator = ",\n";
        }
    }
    out += "\n" + std::string(indent, ' ') + (object ? '}' : ']');
}

}  // namespace

std::string json_text(const json::value& value) {
    std::string out;
    print(value, 0, out);
    return out + '\n';
}

}  // namespace fullstop::report
