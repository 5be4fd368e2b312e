// What the readings of a server say of one level. Levels take turns in a run (the baseline stands
// at both ends of it), so what counts is not the time between a level's first request and its last
// end, but the time in which its answers were under way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "answer/run.h"

namespace fullstop::judge {

struct LevelReadings {
    /// Increases of the server's counter. One that was read while two levels changed over counts
    /// for the higher one. Absent: no two readings with answers of this level between them, or the
    /// counter began anew.
    std::optional<std::int64_t> preemptions = {};
    std::optional<double> kv_used = {};     ///< largest share of the pool
    std::optional<double> free_bytes = {};  ///< least memory of the machine
};

LevelReadings readings_of(const answer::Run& run, const std::string& arm, int concurrency);

}  // namespace fullstop::judge
