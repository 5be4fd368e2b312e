// Warm-up, drift, hiccups, prompt caches and late ends.
#include "simulator/server/pace.h"

#include <algorithm>
#include <utility>

namespace fullstop::simulator {

double Pace::slowness(base::Instant now, std::uint64_t answers_begun) {
    double factor = answers_begun <= Noise::kColdAnswers ? noise_.cold : 1;
    if (first_request_)
        factor *= 1 + noise_.drift_per_minute * base::to_ms(now - *first_request_) / 60'000;
    if (noise_.hiccups > 0 && random_.chance(noise_.hiccups)) factor *= 10;
    return factor;
}

double Pace::prefill_share(std::size_t prompt) {
    prompts_seen_.resize(std::max(prompts_seen_.size(), prompt + 1));
    const bool seen = prompts_seen_[prompt];
    prompts_seen_[prompt] = true;
    return seen ? noise_.cached_prefill : 1;
}

void Pace::end(base::Instant now, net::ServiceSend send, net::ServiceClose close,
               net::ServiceActions& out) {
    base::Duration later{};
    if (noise_.end_jitter > base::Duration::zero())
        later = base::Duration(static_cast<std::int64_t>(
            random_.below(static_cast<std::uint64_t>(noise_.end_jitter.count()))));
    late_.push_back({now + later, std::move(send), close});
    if (later == base::Duration::zero()) send_late_ends(now, out);
}

void Pace::send_late_ends(base::Instant now, net::ServiceActions& out) {
    for (auto& end : late_) {
        if (end.at > now) continue;
        if (!end.send.bytes.empty()) out.push_back(std::move(end.send));
        out.push_back(end.close);
    }
    std::erase_if(late_, [&](const LateEnd& end) { return end.at <= now; });
}

std::optional<base::Instant> Pace::next_end() const {
    const auto next = std::ranges::min_element(late_, {}, &LateEnd::at);
    return next == late_.end() ? std::nullopt : std::optional(next->at);
}

}  // namespace fullstop::simulator
