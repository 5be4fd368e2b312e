// Cuts that nobody labels: answers that call themselves finished, each against the same (prompt,
// seed) alone. Two tests that hold however often they are looked at (stats/evalues.h):
//
//   score  of a pair, which of the two is torn, open, or lacks the last facts? If load does
//          nothing, neither of the two knows which one was alone.
//   flip   of the answers that differ from their baseline, how many stopped first on the common
//          path? Arithmetic that changes with the batch flips an end-of-sequence token now and
//          then; one difference in ten is tolerated.
//
// Length decides nothing: honest texts come out shorter, too.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/levels/level.h"

namespace fullstop::judge {

struct QuietStream {
    double score = 1, flip = 1;  ///< e-values, each at its highest
    std::int64_t pairs = 0;      ///< whole on both sides by their own words
    std::int64_t torn = 0;       ///< strict prefixes that end in the middle
    std::int64_t left_path = 0;  ///< texts that went another way before either ended
    std::int64_t stopped_first = 0, different = 0;
    std::int64_t alone_first = 0;    ///< events in which the one alone stopped first
    std::vector<const Judged*> cut;  ///< torn, stopped first, or without their last facts

    double evalue() const { return (score + flip) / 2; }
};

/// Answers of one level, and which of the baselines of each pair they are compared with (0: the
/// first). Two levels of one stream must not share a baseline.
struct QuietSource {
    const Level* level = nullptr;
    std::size_t baseline = 0;
};

QuietStream quiet_stream(const std::vector<QuietSource>& sources);

}  // namespace fullstop::judge
