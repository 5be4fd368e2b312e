#include "wire/stream_shape.h"

#include <charconv>
#include <optional>

namespace fullstop::wire {
namespace {

std::optional<std::int64_t> whole_number(std::string_view bytes, std::size_t at) {
    while (at < bytes.size() && bytes[at] == ' ') ++at;
    std::int64_t value = 0;
    const auto [end, trouble] =
        std::from_chars(bytes.data() + at, bytes.data() + bytes.size(), value);
    return trouble == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

answer::StreamShape shape_of(std::string_view bytes) {
    const auto holds = [&](std::string_view part) {
        return bytes.find(part) != std::string_view::npos;
    };
    answer::StreamShape shape;
    shape.crlf_events = holds("}\r\n\r\ndata:");
    shape.tight_data = holds("\ndata:{");
    shape.id_or_retry = holds("\nid:") || holds("\nretry:");
    shape.leading_colon = holds("\"content\":\":");
    shape.comment_as_data = holds("data: : ") || holds("data: :\n");
    constexpr std::string_view kCreated = "\"created\":";
    if (const auto first = bytes.find(kCreated); first != std::string_view::npos) {
        shape.created_first = whole_number(bytes, first + kCreated.size());
        shape.created_last = whole_number(bytes, bytes.rfind(kCreated) + kCreated.size());
    }
    return shape;
}

}  // namespace fullstop::wire
