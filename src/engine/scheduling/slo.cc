// The engine's side of latency targets: what it knows of everybody, handed to the forecast.
#include "engine/scheduling/slo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/cost/ttft_forecast.h"
#include "engine/engine.h"

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

/// Tokens at its beginning that will be in memory when its turn comes: kept of an answer that
/// ended, or computed by one that was there before it.
Tokens Engine::known_by_then(const Sequence& sequence) const {
    const auto tokens = std::span<const TokenId>(sequence.tokens).first(sequence.tokens.size() - 1);
    const bool shares = backend_.facts().shares;
    Tokens known = prefixes_.longest(sequence.client, tokens);
    if (!shares && host_.total().count == 0) return known;
    for (const auto* list : {&running_, &waiting_})
        for (const Owned& other : *list) {
            if (other.get() == &sequence || other->client != sequence.client ||
                !divisible(other->worst_case()))
                continue;
            const Tokens common = common_beginning(other->tokens, tokens);
            if (shares)
                known =
                    std::max(known, pool_.block_size() * (common.count / pool_.block_size().count));
            else if (worth_copying(common, other->length()))
                known = std::max(known, common);
        }
    return known;
}

/// What is in KV counts as read; what a paused answer brings back from host memory does, too, and a
/// beginning that is known.
Course Engine::course_of(const Sequence& sequence, Instant now) const {
    const Tokens known = std::max({sequence.in_kv, sequence.in_snapshot,
                                   sequence.admitted ? Tokens{} : sequence.known_beginning});
    Course course{
        .in_kv = known,
        .prompt_left = sequence.decoding() ? Tokens{} : sequence.length() - known,
        .output_left = std::max(Tokens{1}, admission_.likely(sequence) - sequence.length()),
        .demand = sequence.worst_case(),
        .priority = sequence.priority,
        .level = ranking_.of(sequence, now).level};
    if (options_.admission == AdmissionMode::kForecast)
        course.demand = admission_.expected(sequence);
    if (options_.admission == AdmissionMode::kEager) course.demand = sequence.length() + Tokens{1};
    return course;
}

/// Absent: it is not known yet what steps cost.
std::optional<Duration> Engine::estimate_ttft(Instant now, const Sequence& sequence,
                                              bool idle) const {
    const CostModel* cost = pacing_.cost();
    if (cost == nullptr) return std::nullopt;
    ForecastState state{.streams = backend_.facts().layout == KvLayout::kStreams,
                        .places = backend_.facts().max_sequences,
                        .pool = pool_.block_size() * pool_.total().count,
                        .block = pool_.block_size(),
                        .running = {},
                        .waiting = {}};
    if (!idle) {
        for (const Sequence* other : in_order(running_, now))
            state.running.push_back(course_of(*other, now));
        for (const Sequence* other : in_order(waiting_, now)) {
            if (other == &sequence) break;
            state.waiting.push_back(course_of(*other, now));
        }
    }
    state.waiting.push_back(course_of(sequence, now));
    return (idle ? Duration{} : now - sequence.arrived) +
           forecast_ttft(std::move(state), pacing_, *cost, options_.itl_target);
}

/// Demotes the newest request, or says why it is refused; both only when even a hopeful estimate
/// misses the target.
std::optional<Engine::EarlyRefusal> Engine::hold_to_target(Instant now, Sequence& sequence) {
    if (!options_.ttft_target) return std::nullopt;
    const Duration target = *options_.ttft_target;
    sequence.known_beginning = known_by_then(sequence);
    sequence.ttft_estimate = estimate_ttft(now, sequence, false);
    if (!sequence.ttft_estimate || options_.slo_policy == SloPolicy::kIgnore) return std::nullopt;
    const auto hopeful = [&](Duration estimate) {
        return std::chrono::duration_cast<Duration>(estimate / pacing_.cost()->slack(1));
    };
    if (hopeful(*sequence.ttft_estimate) <= target || estimate_ttft(now, sequence, true) > target)
        return std::nullopt;
    if (options_.slo_policy == SloPolicy::kDemote) {
        sequence.demoted = true;
        ++demoted_;
        if (sequence.priority != Priority::kBatch)
            sequence.priority = static_cast<Priority>(static_cast<int>(sequence.priority) + 1);
        return std::nullopt;
    }
    ++rejected_early_;
    const Duration over = *sequence.ttft_estimate - target;
    return EarlyRefusal{
        fmt::format("its first token would come after about {:.1f} s and the target is {:.1f} s: "
                    "{} answers are running and {} requests wait; "
                    "about {:.0f} s until one could be in time",
                    base::to_seconds(*sequence.ttft_estimate), base::to_seconds(target),
                    running_.size(), waiting_.size() - 1, std::max(1.0, base::to_seconds(over))),
        std::max<Duration>(over, std::chrono::seconds(1))};
}

}  // namespace fullstop::engine
