// The backend is wrapped to see the runs of each step; everything else is the engine's own way of
// serving.
#include "engine/cost/trial_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "stats/quantile.h"

namespace fullstop::engine {
namespace {

using base::Tokens;

constexpr std::int64_t kAnswers = 12, kAtOnce = 8, kOutput = 60;

/// Passes everything on, and keeps the shape of the last step.
class WatchedBackend final : public Backend {
public:
    explicit WatchedBackend(Backend& backend)
        : backend_(backend), shape_(backend.facts().layout == KvLayout::kStreams) {}

    const StepShape& shape() const { return shape_; }

    const ModelFacts& facts() const override { return backend_.facts(); }
    PromptTokens tokenize(std::string_view text) const override { return backend_.tokenize(text); }
    std::string piece(TokenId token) const override { return backend_.piece(token); }
    bool is_end(TokenId token) const override { return backend_.is_end(token); }
    base::Result<PromptTokens> chat_tokens(
        std::span<const answer::Message> messages) const override {
        return backend_.chat_tokens(messages);
    }
    base::Result<std::string> chat_text(std::span<const answer::Message> messages) const override {
        return backend_.chat_text(messages);
    }
    base::Result<std::unique_ptr<TokenConstraint>> constrain(const std::string& grammar) override {
        return backend_.constrain(grammar);
    }
    DecodeStatus decode(std::span<const Run> runs) override {
        Tokens all;
        for (const auto& [id, length] : held_) all += length;
        shape_ = StepShape(shape_.streams(), runs, all);
        for (const Run& run : runs)
            held_[run.sequence] = run.position + Tokens{std::ssize(run.tokens)};
        return backend_.decode(runs);
    }
    std::span<const float> logits(std::size_t index) const override {
        return backend_.logits(index);
    }
    void remove(SequenceId sequence) override {
        held_.erase(sequence);
        backend_.remove(sequence);
    }
    std::vector<std::byte> snapshot(SequenceId, Tokens) override {
        return {};
    }  // what steps take is asked, not what swaps take
    bool append(SequenceId, Tokens, std::span<const std::byte>) override { return false; }
    bool restore(SequenceId, Tokens, Tokens, std::span<const std::byte>) override { return false; }
    void share(SequenceId, SequenceId, Tokens) override {}

private:
    Backend& backend_;
    StepShape shape_;
    std::map<SequenceId, Tokens> held_;
};

Submission question(std::int64_t number, base::Instant now) {
    Submission submission;
    submission.id = static_cast<SequenceId>(number);
    submission.arrived = now;
    submission.prompt = fmt::format(
        "{}. Tell a story of a long voyage: who went, what they saw, how they came home, and what "
        "it cost them.{}\n",
        number, std::string(static_cast<std::size_t>(20 * (number % 5)), '.'));
    submission.sampling.temperature = 0.7;
    submission.sampling.seed = static_cast<std::uint64_t>(number);
    submission.max_tokens = Tokens{kOutput};
    return submission;
}

}  // namespace

std::optional<TrialRun> trial_run(Backend& backend, const base::Clock& clock, const CostModel& cost,
                                  base::Duration budget, const std::function<bool()>& stop) {
    WatchedBackend watched(backend);
    Engine engine(watched, {.admission = AdmissionMode::kReserve, .host_memory = {}});
    EngineEvents events;
    const auto until = clock.now() + budget;
    std::vector<double> misses;
    base::Duration taken{}, estimated{};
    std::int64_t asked = 0;
    while (!stop() && clock.now() < until) {
        while (asked < kAnswers &&
               engine.occupancy().running + engine.occupancy().waiting < kAtOnce)
            engine.submit(clock.now(), question(++asked, clock.now()), events);
        const auto before = clock.now();
        if (!engine.plan(before, events)) break;
        engine.compute();
        engine.commit(clock.now(), events);
        const auto took = clock.now() - before, estimate = cost.estimate(watched.shape());
        events.clear();
        if (took <= base::Duration{}) continue;
        misses.push_back(std::abs(base::to_ms(estimate) / base::to_ms(took) - 1));
        taken += took, estimated += estimate;
    }
    engine.cancel_all(clock.now(), answer::Cause::kAbortedByServer, "the trial is over", events);
    if (misses.empty()) return std::nullopt;
    return TrialRun{.steps = std::ssize(misses),
                    .mean_miss = stats::mean(misses),
                    .median_miss = stats::median(misses),
                    .total_miss = base::to_ms(estimated) / base::to_ms(taken) - 1};
}

}  // namespace fullstop::engine
