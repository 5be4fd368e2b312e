// The public words of the end facts.
#include "answer/end.h"

#include <array>

namespace fullstop::answer {
namespace {

constexpr std::array<std::string_view, 7> kTransports = {
    "clean", "truncated", "reset", "timed_out", "closed_by_us", "refused", "unknown"};
constexpr std::array<std::string_view, 4> kFramings = {"chunked", "content_length", "until_close",
                                                       "none"};
constexpr std::array<std::string_view, 3> kPlaces = {"http", "stream", "log"};
constexpr std::array<std::string_view, 4> kBys = {"none", "us", "peer", "unknown"};
constexpr std::array<std::string_view, 3> kKinds = {"none", "fin", "rst"};
constexpr std::array<std::string_view, 4> kFired = {"none", "client", "gateway", "server"};

template <class Enum, std::size_t N>
std::string_view word(const std::array<std::string_view, N>& words, Enum value) {
    return words[static_cast<std::size_t>(value)];
}
template <class Enum, std::size_t N>
std::optional<Enum> parse(const std::array<std::string_view, N>& words, std::string_view text) {
    for (std::size_t i = 0; i < N; ++i)
        if (words[i] == text) return static_cast<Enum>(i);
    return std::nullopt;
}

}  // namespace

std::string_view to_string(Transport v) { return word(kTransports, v); }
std::string_view to_string(Framing v) { return word(kFramings, v); }
std::string_view to_string(ErrorPlace v) { return word(kPlaces, v); }
std::string_view to_string(Disconnect::By v) { return word(kBys, v); }
std::string_view to_string(Disconnect::Kind v) { return word(kKinds, v); }
std::string_view to_string(DeadlineFired v) { return word(kFired, v); }
std::optional<Transport> parse_transport(std::string_view t) {
    return parse<Transport>(kTransports, t);
}
std::optional<Framing> parse_framing(std::string_view t) { return parse<Framing>(kFramings, t); }
std::optional<ErrorPlace> parse_error_place(std::string_view t) {
    return parse<ErrorPlace>(kPlaces, t);
}
std::optional<Disconnect::By> parse_disconnect_by(std::string_view t) {
    return parse<Disconnect::By>(kBys, t);
}
std::optional<Disconnect::Kind> parse_disconnect_kind(std::string_view t) {
    return parse<Disconnect::Kind>(kKinds, t);
}
std::optional<DeadlineFired> parse_deadline_fired(std::string_view t) {
    return parse<DeadlineFired>(kFired, t);
}

}  // namespace fullstop::answer
