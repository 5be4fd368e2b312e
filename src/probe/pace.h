// What the rest of the experiment will cost, from what it has cost so far, and what to leave out
// when the budget does not hold it: later seeds first, then middle levels, then prompts nobody has
// run yet; always evenly, never silently.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "answer/run.h"

namespace fullstop::probe {

class Pace {
public:
    void answered(int concurrency, double seconds);
    /// A level was worked through: `seconds` for `answers` of them.
    void step_done(int concurrency, std::size_t answers, double seconds);

    /// Mean time of an answer of a single user; 0 before the first.
    double alone_s() const;
    /// 0 while nothing is known.
    double cost(const answer::Experiment::Step& step, std::size_t prompts) const;
    double cost(const answer::Experiment& experiment, std::size_t from_step,
                std::size_t prompts) const;

private:
    struct Sum {
        double seconds = 0;
        double answers = 0;
    };
    std::map<int, Sum> per_answer_;  ///< by level: how long one answer took
    std::map<int, Sum> per_step_;    ///< by level: how long the level took
};

/// Seeds of the remaining steps (from `from_step` on): no step carries a repeat of `keep` or later.
/// Returns whether anything changed.
bool keep_repeats(answer::Experiment& experiment, std::size_t from_step, int keep,
                  std::size_t prompts);
/// Highest repeat + 1 that the remaining steps carry as a seed of its own.
int repeats_left(const answer::Experiment& experiment, std::size_t from_step);
/// Drops one middle level from the remaining steps; the highest stays. Returns whether there was
/// one.
bool drop_middle_level(answer::Experiment& experiment, std::size_t from_step);
/// "8 prompts x 2 seeds at 1, 2, 4, 8"
std::string shape_of(const answer::Experiment& experiment, std::size_t prompts, int repeats);

}  // namespace fullstop::probe
