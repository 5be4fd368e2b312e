// Differences of moments, each absent when one of its moments is.
#include "answer/record.h"

namespace fullstop::answer {
namespace {

std::optional<base::Duration> between(const std::optional<base::Duration>& from,
                                      const std::optional<base::Duration>& to) {
    if (!from || !to) return std::nullopt;
    return *to - *from;
}

}  // namespace

std::string_view to_string(StampClock clock) {
    return clock == StampClock::kKernel ? "kernel" : "user_space";
}

std::optional<std::int64_t> Record::length_tokens() const {
    if (output_tokens) return (*output_tokens).count;
    if (counted_tokens) return (*counted_tokens).count;
    return std::nullopt;
}

std::optional<base::Duration> Record::elapsed() const {
    return between(timeline.sent, timeline.ended);
}
std::optional<base::Duration> Record::ttft() const {
    return between(timeline.sent, timeline.first_token);
}
std::optional<base::Duration> Record::ttft_answer() const {
    return between(timeline.sent, timeline.first_answer);
}
std::optional<base::Duration> Record::last_silence() const {
    return between(timeline.last_token ? timeline.last_token : timeline.sent, timeline.ended);
}

}  // namespace fullstop::answer
