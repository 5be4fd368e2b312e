// The quantile rises when an answer had to be paused and falls slowly while none is: it finds the
// hope that the load allows.
#include "engine/scheduling/admission.h"

#include <algorithm>
#include <array>

#include "engine/limits.h"

namespace fullstop::engine {
namespace {

using base::Blocks;
using base::Tokens;

constexpr std::array<std::string_view, 3> kWords = {"reserve", "forecast", "eager"};
/// A pause costs ten answers' worth of hope.
constexpr double kRise = 0.1, kFall = 0.01;
/// Headroom is not doubled for ever: after so many times it is larger than any pool.
constexpr int kMostDoublings = 20;

}  // namespace

std::string_view to_string(AdmissionMode mode) { return kWords[static_cast<std::size_t>(mode)]; }

std::optional<AdmissionMode> parse_admission(std::string_view word) {
    for (std::size_t i = 0; i < kWords.size(); ++i)
        if (kWords[i] == word) return static_cast<AdmissionMode>(i);
    return std::nullopt;
}

Tokens Admission::promise(const Sequence& candidate) const {
    return mode_ == AdmissionMode::kReserve
               ? candidate.worst_case()
               : std::min(candidate.worst_case(), candidate.length() + Tokens{1});
}

std::optional<Blocks> Admission::needs(const Sequence& candidate,
                                       std::span<const Sequence* const> running,
                                       const BlockPool& pool,
                                       const std::optional<BlockPool::Beginning>& shared) const {
    const Blocks worst = base::blocks_for(candidate.worst_case(), pool.block_size()),
                 there = shared ? shared->blocks : Blocks{};
    if (mode_ == AdmissionMode::kReserve) return worst - there;
    if (mode_ == AdmissionMode::kForecast && !fits_until_all_end(candidate, running, pool, shared))
        return std::nullopt;
    Blocks headroom;
    if (mode_ == AdmissionMode::kEager || candidate.pauses() > 0)  // a forecast has its own
        headroom = {(std::ssize(running) + 1) << std::min(candidate.pauses(), kMostDoublings)};
    return std::min(worst, base::blocks_for(promise(candidate), pool.block_size()) + headroom) -
           there;
}

/// Every step adds a token to each. Memory peaks where one ends; there those that are not over hold
/// what they have now and as many tokens as that one still makes, blocks that they own together
/// once.
bool Admission::fits_until_all_end(const Sequence& candidate,
                                   std::span<const Sequence* const> running, const BlockPool& pool,
                                   const std::optional<BlockPool::Beginning>& shared) const {
    struct Course {
        SequenceId id;
        Tokens now, left;
    };
    std::vector<Course> courses = {
        {candidate.id, candidate.length(), expected(candidate) - candidate.length()}};
    for (const Sequence* sequence : running)
        courses.push_back(
            {sequence->id, sequence->length(), expected(*sequence) - sequence->length()});
    for (const Course& end : courses) {
        Blocks peak;
        std::vector<SequenceId> there;
        for (const Course& other : courses) {
            if (other.left < end.left) continue;
            peak += base::blocks_for(other.now + end.left, pool.block_size());
            there.push_back(other.id);
        }
        peak -= pool.counted_twice(there);
        const auto is_there = [&](SequenceId id) {
            return std::ranges::find(there, id) != there.end();
        };
        if (shared && is_there(candidate.id) && is_there(shared->of)) peak -= shared->blocks;
        if (peak > pool.total()) return false;
    }
    return true;
}

std::vector<Tokens> Admission::longer_than(const Sequence& sequence) const {
    std::vector<Tokens> longer;
    std::ranges::copy_if(lately_, std::back_inserter(longer),
                         [&](Tokens output) { return output > sequence.output(); });
    return longer;
}

Tokens Admission::halfway(const Sequence& sequence) {
    const Tokens worst = sequence.worst_case(), half{(worst - sequence.length()).count / 2};
    return std::min(worst, sequence.length() + std::max(half, Tokens{1}));
}

Tokens Admission::expected(const Sequence& sequence) const {
    std::vector<Tokens> longer = longer_than(sequence);
    if (longer.empty()) return halfway(sequence);
    const auto at = longer.begin() +
                    static_cast<std::ptrdiff_t>(quantile_ * static_cast<double>(longer.size() - 1));
    std::ranges::nth_element(longer, at);
    return std::min(sequence.worst_case(), sequence.prompt + *at);
}

Tokens Admission::likely(const Sequence& sequence) const {
    const std::vector<Tokens> longer = longer_than(sequence);
    if (longer.empty()) return halfway(sequence);
    Tokens all;
    for (const Tokens output : longer) all += std::min(output, sequence.limit);
    return sequence.prompt +
           std::max(sequence.output() + Tokens{1}, Tokens{all.count / std::ssize(longer)});
}

void Admission::ended(Tokens output) {
    quantile_ = std::max(kLeastQuantile, quantile_ - kFall);
    lately_.push_back(output);
    if (lately_.size() > kForecastAnswers) lately_.pop_front();
}

void Admission::paused() { quantile_ = std::min(1.0, quantile_ + kRise); }

}  // namespace fullstop::engine
