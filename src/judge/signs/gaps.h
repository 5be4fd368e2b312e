// Silences inside an answer: which are pauses, and which time-outs they would have set off.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "answer/record.h"

namespace fullstop::judge {

/// A silence counts as a pause when it is this long and this many times the answer's own 95th
/// percentile of gaps: gaps of 0.9 to 2.2 s occur on a busy llama-server without any fault.
inline constexpr double kPauseMs = 5000;
inline constexpr double kPauseFactor = 5;

/// Milliseconds of the longest pause between two text events; absent when there is none.
std::optional<double> longest_pause(const answer::Record& record);

/// Longest silence a client or gateway would have seen: before the first token or between tokens.
/// Comments count as life for sockets, not here.
std::optional<double> longest_silence(const answer::Record& record);

/// "10 s: 4 of 8; 30 s: none": which idle limits would have cut whole answers; empty when none.
std::string idle_limits_that_would_cut(const std::vector<const answer::Record*>& records,
                                       std::vector<std::string>* ids = nullptr);

}  // namespace fullstop::judge
