// The engine's side of latency targets: what it knows of everybody, handed to the forecast.
#include "engine/slo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/engine.h"
#include "engine/ttft_forecast.h"

namespace fullstop::engine {

using base::Duration;
using base::Instant;
using base::Tokens;

namespace {

constexpr std::array<std::string_view, 3> kWords = {"ignore", "demote", "reject_early"};

}  // namespace

std::string_view to_string(SloPolicy policy) { return kWords[static_cast<std::size_t>(policy)]; }

std::optional<SloPolicy> parse_slo_policy(std::string_view word) {
    for (std::size_t i = 0; i < kWords.size(); ++i)
        if (kWords[i] == word) return static_cast<SloPolicy>(i);
    return std::nullopt;
}

/// What is in KV counts as read; what a paused answer brings back from host memory does, too.
Course Engine::course_of(const Sequence& sequence, Instant now) const {
    const Tokens known = std::max(sequence.in_kv, sequence.in_snapshot);
    Course course{.in_kv = known,
                  .prompt_left = sequence.decoding() ? Tokens{} : sequence.length() - known,
                  .output_left = std::max(Tokens{1}, admission_.likely(sequence) - sequence.length()),
                  .demand = sequence.worst_case(),
                  .priority = sequence.priority,
                  .level = ranking_.of(sequence, now).level};
    if (options_.admission == AdmissionMode::kForecast) course.demand = admission_.expected(sequence);
    if (options_.admission == AdmissionMode::kEager) course.demand = sequence.length() + Tokens{1};
    return course;
}

/// Absent: it is not known yet what steps cost.
std::optional<Duration> Engine::estimate_ttft(Instant now, const Sequence& sequence, bool idle) {
    const CostModel* cost = pacing_.cost();
    if (cost == nullptr) return std::nullopt;
    ForecastState state{.streams = backend_.facts().layout == "streams",
                        .places = backend_.facts().max_sequences,
                        .pool = pool_.block_size() * pool_.total().count,
                        .block = pool_.block_size(),
                        .running = {},
                        .waiting = {}};
    if (!idle) {
        for (const Sequence* other : in_order(running_, now)) state.running.push_back(course_of(*other, now));
        for (const Sequence* other : in_order(waiting_, now)) {
            if (other == &sequence) break;
            state.waiting.push_back(course_of(*other, now));
        }
    }
    Course own = course_of(sequence, now);
    const auto tokens = std::span<const TokenId>(sequence.tokens).first(sequence.tokens.size() - 1);
    Tokens begun = prefixes_.find(sequence.client, tokens).length;
    running_that_begins_like(sequence, begun);
    own.in_kv += begun;
    own.prompt_left -= begun;
    state.waiting.push_back(own);
    return (idle ? Duration{} : now - sequence.arrived) + forecast_ttft(std::move(state), pacing_, *cost, options_.itl_target);
}

/// Demotes the newest request, or says why it is refused; both only when even a hopeful estimate misses the target.
std::optional<Engine::EarlyRefusal> Engine::hold_to_target(Instant now, Sequence& sequence) {
    if (!options_.ttft_target) return std::nullopt;
    const Duration target = *options_.ttft_target;
    sequence.ttft_estimate = estimate_ttft(now, sequence, false);
    if (!sequence.ttft_estimate || options_.slo_policy == SloPolicy::kIgnore) return std::nullopt;
    const auto hopeful = [&](Duration estimate) { return std::chrono::duration_cast<Duration>(estimate / pacing_.cost()->slack(1)); };
    if (hopeful(*sequence.ttft_estimate) <= target || estimate_ttft(now, sequence, true) > target) return std::nullopt;
    if (options_.slo_policy == SloPolicy::kDemote) {
        sequence.demoted = true;
        ++demoted_;
        if (sequence.priority != Priority::kBatch) sequence.priority = static_cast<Priority>(static_cast<int>(sequence.priority) + 1);
        return std::nullopt;
    }
    ++rejected_early_;
    const Duration over = *sequence.ttft_estimate - target;
    return EarlyRefusal{fmt::format("its first token would come after about {:.1f} s and the target is {:.1f} s: {} answers are running and {} requests wait; "
                                    "about {:.0f} s until one could be in time",
                                    base::to_seconds(*sequence.ttft_estimate), base::to_seconds(target), running_.size(), waiting_.size() - 1,
                                    std::max(1.0, base::to_seconds(over))),
                        std::max<Duration>(over, std::chrono::seconds(1))};
}

}  // namespace fullstop::engine
