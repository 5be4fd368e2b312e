// Whether an answer may start or go on now, and how much KV memory it is promised.
//
// reserve: its worst case, so that nobody is ever paused for memory. eager: what it has now, and a
// block of headroom for each that runs. forecast: the same, if moreover all that run will fit at
// every moment at which one of them is expected to end (the past-future idea, arXiv 2507.10150),
// lengths being those of the answers that ended lately. An answer that was paused asks for twice
// the headroom each time, so it is paused a few times at most.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "engine/scheduling/block_pool.h"
#include "engine/scheduling/sequence.h"

namespace fullstop::engine {

enum class AdmissionMode { kReserve, kForecast, kEager };

std::string_view to_string(AdmissionMode);
/// reserve, forecast, eager.
std::optional<AdmissionMode> parse_admission(std::string_view word);

class Admission {
public:
    explicit Admission(AdmissionMode mode) : mode_(mode) {}

    /// Blocks that must be free for `candidate` to start beside `running`; absent: the forecast
    /// says it would not fit later. `shared`: the beginning it would have in common with one of
    /// them.
    std::optional<base::Blocks> needs(const Sequence& candidate,
                                      std::span<const Sequence* const> running,
                                      const BlockPool& pool,
                                      const std::optional<BlockPool::Beginning>& shared = {}) const;
    /// Tokens in KV that it is promised when it starts.
    base::Tokens promise(const Sequence& candidate) const;

    /// Tokens it is expected to hold at its end: a high quantile of the outputs lately that were
    /// longer than its own is now.
    base::Tokens expected(const Sequence& sequence) const;
    /// The same by their mean: for sums over many answers, where a high quantile of each would be
    /// too much.
    base::Tokens likely(const Sequence& sequence) const;

    /// An answer ended with this many output tokens.
    void ended(base::Tokens output);
    /// An answer was paused for memory: the forecast was too hopeful.
    void paused();

private:
    /// Outputs lately that were longer than its own is now.
    std::vector<base::Tokens> longer_than(const Sequence& sequence) const;
    /// When nothing is known of answers this long: half of what it may still make.
    static base::Tokens halfway(const Sequence& sequence);
    bool fits_until_all_end(const Sequence& candidate, std::span<const Sequence* const> running,
                            const BlockPool& pool,
                            const std::optional<BlockPool::Beginning>& shared) const;
    AdmissionMode mode_;
    std::deque<base::Tokens> lately_;  ///< output lengths, newest last
    double quantile_ = kLeastQuantile;
    static constexpr double kLeastQuantile = 0.8;
};

}  // namespace fullstop::engine
