// One loop: arrivals and departures, then a step. Users of a closed loop ask again when their
// answer has ended, or, refused for load, when the refusal says so.
#include "simulator/capacity/serving_run.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace fullstop::simulator {

using base::Duration;
using base::Tokens;

namespace {

constexpr std::uint64_t kNoText = 1469598103934665603U;  // FNV-1a of nothing

std::uint64_t hash_with(std::uint64_t hash, std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return hash;
}

/// Rows of all answers, each computed once.
std::int64_t rows_at_most(const ServingLoad& load, Tokens window) {
    std::int64_t rows = 0;
    for (const PlannedRequest& request : load.requests)
        rows += std::min(request.prompt + request.max_tokens.value_or(window), window).count + 1;
    return rows;
}

/// Each pause of an answer doubles what must be free before it comes back (admission.cc), so a few
/// fill any pool; classes and ageing add a few.
constexpr std::int64_t kMostPauses = 64;

}  // namespace

ServingRun::ServingRun(SimulatedBackend& backend, const engine::EngineOptions& options,
                       ServingLoad load, Watch watch)
    : backend_(backend),
      engine_(backend, options),
      load_(std::move(load)),
      watch_(std::move(watch)),
      answers_(load_.requests.size()),
      most_rows_(rows_at_most(load_, backend.facts().window)) {
    for (std::int64_t user = 0; user < load_.users; ++user) idle_.insert(Duration{});
    for (ServedAnswer& answer : answers_) answer.text_hash = kNoText;
    for (std::size_t i = 0; i < load_.requests.size(); ++i)
        backend_.set_length(prompt_text(i, load_.requests[i].prompt, load_.requests[i].shared),
                            load_.requests[i].natural);
}

std::optional<Duration> ServingRun::next_arrival() const {
    if (next_ == load_.requests.size()) return std::nullopt;
    if (load_.users == 0) return load_.requests[next_].at;
    return idle_.empty() ? std::nullopt : std::optional(*idle_.begin());
}

void ServingRun::arrive() {
    while (true) {
        const auto at = next_arrival();
        if (!at || *at > now_) return;
        if (load_.users > 0) idle_.erase(idle_.begin());
        ask(next_++, *at);
    }
}

void ServingRun::ask(std::size_t request, Duration at) {
    const PlannedRequest& planned = load_.requests[request];
    ServedAnswer& answer = answers_[request];
    answer.asked = true;
    answer.arrived = at;
    if (watch_.changed) watch_.changed(at, request, answer);
    if (planned.patience) impatient_.push_back(request);
    engine::Submission submission;
    submission.id = request + 1;
    submission.arrived = base::Instant(at);
    submission.prompt = prompt_text(request, planned.prompt, planned.shared);
    submission.sampling.temperature = 0;
    submission.max_tokens = planned.max_tokens;
    submission.priority = planned.priority;
    submission.client = planned.client;
    engine_.submit(instant(), std::move(submission), events_);
    read_events();
}

void ServingRun::leave() {
    std::erase_if(impatient_, [&](std::size_t request) {
        const bool gone = answers_[request].ended;
        if (gone || answers_[request].arrived + *load_.requests[request].patience > now_)
            return gone;
        engine_.cancel(instant(), request + 1, answer::Cause::kClientCancelled, "the client left",
                       events_);
        return true;
    });
    read_events();
}

bool ServingRun::advance() {
    arrive();
    leave();
    const bool planned = engine_.plan(instant(), events_);
    read_events();
    if (!planned) {
        const auto next = next_arrival();
        stuck_ = !next && !engine_.idle();
        if (!next) return false;
        now_ = std::max(now_, *next);
        return true;
    }
    const Tokens used = engine_.occupancy().kv_used;
    engine_.compute();
    const Duration took = backend_.take_elapsed();
    now_ += took;
    busy_ += took;
    rows_ += backend_.last_rows();
    engine_.commit(instant(), events_);
    read_events();
    used_token_seconds_ += base::to_seconds(took) * static_cast<double>(used.count);
    if (watch_.stepped)
        watch_.stepped({.at = now_,
                        .took = took,
                        .rows = backend_.last_rows(),
                        .decodes = backend_.last_decodes(),
                        .after = engine_.occupancy()});
    stuck_ = goes_round();
    return !stuck_;
}

/// Every step computes a row; rows are computed again only after a pause that gave them up.
bool ServingRun::goes_round() const {
    const engine::Occupancy occupancy = engine_.occupancy();
    const std::int64_t pauses = occupancy.swaps + occupancy.recomputes;
    return backend_.steps() > most_rows_ + occupancy.recomputes * backend_.facts().window.count ||
           pauses > kMostPauses * static_cast<std::int64_t>(load_.requests.size());
}

void ServingRun::read_events() {
    for (const engine::EngineEvent& event : std::exchange(events_, {}))
        std::visit([&](const auto& what) { on(what); }, event);
}

void ServingRun::on(const engine::Refused& event) {
    ServedAnswer& answer = answers_[event.id - 1];
    answer.refused = true;
    answer.cause = event.end.cause;
    over(event.id - 1, now_ + event.retry_after.value_or(Duration{}));
}

void ServingRun::on(const engine::Produced& event) {
    ServedAnswer& answer = answers_[event.id - 1];
    ++answer.tokens.count;
    answer.text_hash = hash_with(answer.text_hash, event.text);
    if (event.gap) {
        answer.longest_gap = std::max(answer.longest_gap, *event.gap);
        gaps_ms_.push_back(static_cast<float>(base::to_ms(*event.gap)));
    } else {
        answer.first = now_;
        if (watch_.changed) watch_.changed(now_, event.id - 1, answer);
    }
}

void ServingRun::on(const engine::Ended& event) {
    ServedAnswer& answer = answers_[event.id - 1];
    FULLSTOP_ASSERT(answer.tokens == event.end.numbers.output_tokens,
                    "every token of an answer was shown once");
    answer.text_hash = hash_with(answer.text_hash, event.text);
    answer.cause = event.end.cause;
    answer.swaps = event.end.numbers.swaps;
    answer.recomputes = event.end.numbers.recomputes;
    answer.paused = event.end.numbers.paused;
    answer.estimate = event.end.numbers.ttft_estimate;
    over(event.id - 1, now_);
}

void ServingRun::over(std::size_t request, Duration asks_again) {
    ServedAnswer& answer = answers_[request];
    FULLSTOP_ASSERT(!answer.ended, "an answer ends once");
    answer.ended = true;
    answer.end = now_;
    ++ended_;
    if (watch_.changed) watch_.changed(now_, request, answer);
    if (load_.users > 0) idle_.insert(asks_again);
}

}  // namespace fullstop::simulator
