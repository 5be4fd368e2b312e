// Cuts that their own end shows (an error, a reset, a refusal, a limit nobody asked for), counted
// by events and tested against a tolerated rate of one in a hundred, which a healthy server stays
// below (stats/evalues.h). Bare breaks, which networks bring alone as well, must be more than
// alone.
#pragma once

#include <vector>

#include "judge/levels/level.h"

namespace fullstop::judge {

struct LabelledStream {
    stats::Count events;  ///< in the answers that say something
    double rate = 1;      ///< e-value against one in a hundred, at its highest
    double pair = 1;      ///< e-value against "no more than alone", at its highest
    stats::Count alone;   ///< lost answers of one user
    double fisher = 1;    ///< p of Fisher's exact test, one look, not corrected
    bool bare = false;    ///< most events are breaks without a word of anybody's
};

/// `losses` of `level`; `before`: those of the baseline, which may be null.
LabelledStream labelled_stream(const Level& level, const std::vector<const Judged*>& losses,
                               const Level* baseline, const std::vector<const Judged*>& before);

/// What broke in one moment without a word of anybody's is one event, however many answers it took:
/// a blip of the network, or a server that was started anew. The first of each, in planned order.
std::vector<const Judged*> events_of(const std::vector<const Judged*>& losses);

}  // namespace fullstop::judge
