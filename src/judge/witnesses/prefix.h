// Is a text a strict prefix of what the same (prompt, seed) said alone? The sharpest witness of a
// cut, but only where the server repeats itself bit for bit; elsewhere it says nothing at all.
#pragma once

#include <optional>
#include <vector>

#include "answer/record.h"

namespace fullstop::judge {

/// At least two baselines and all their texts equal.
bool repeats_itself(const std::vector<const answer::Record*>& baselines);

/// True: strict prefix of the baseline text. False: equal, longer or different. Absent: the
/// baseline is not bit-equal.
std::optional<bool> prefix_of_baseline(const answer::Record& record,
                                       const std::vector<const answer::Record*>& baselines);

/// Byte at which the text leaves the first baseline's text; absent when one is a prefix of the
/// other.
std::optional<std::size_t> divergence(const answer::Record& record,
                                      const std::vector<const answer::Record*>& baselines);

}  // namespace fullstop::judge
