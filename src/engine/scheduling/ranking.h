// Who goes before whom: a strict total order over answers, so that somebody is always first and is
// never held up.
//
// Class, then deadline, then the service its client has had, then arrival. A class rises with age,
// and whoever is old enough stands above all classes in plain order of arrival: that nobody starves
// follows from it. The client that was served least goes first (serving::TokenCounters).
#pragma once

#include <compare>
#include <string>

#include "engine/scheduling/sequence.h"
#include "serving/token_counters.h"

namespace fullstop::engine {

/// The smaller goes first. No two answers are equal: `rank` is unique.
struct Standing {
    int level = 0;  ///< the class, less one for each kAgeing of waiting; -1: old enough to stand
                    ///< above all classes
    base::Instant due;        ///< the far future without a deadline, and at level -1
    std::int64_t served = 0;  ///< the client's counter; 0 once admitted, and at level -1
    std::uint64_t rank = 0;
    auto operator<=>(const Standing&) const = default;
};

class Ranking {
public:
    /// Of an answer now; it changes with time and with what its client is served.
    Standing of(const Sequence& sequence, base::Instant now) const;
    /// May an answer with this standing and class take the place or the memory of the other? Only
    /// one of a class that the other has not reached by age.
    static bool outranks(Priority newcomer, const Standing& other) {
        return static_cast<int>(newcomer) < other.level;
    }

    void arrived(const std::string& client);
    /// Rows computed for one of the client's answers: a token made costs as much as two tokens
    /// read.
    void charge(const std::string& client, base::Tokens read, base::Tokens made);
    void ended(const std::string& client);

private:
    serving::TokenCounters clients_;
};

}  // namespace fullstop::engine
