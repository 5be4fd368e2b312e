// The experiment as a value: which steps (arm, phase, concurrency) in which order, and which
// requests in each step. Pure and fixed before the first request; --dry-run prints it, and a seed
// repeats it.
//
// A pair is a prompt with a seed. Repeat r has seed `experiment.seed + r`; every pair runs at every
// level, and alone twice: before and after the load, so that the baseline's own noise can be
// measured.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "answer/run.h"
#include "base/result.h"

namespace fullstop::probe {

/// Fills experiment.order: levels up and down again (1 2 4 8 4 2 1) so that drift cannot pose as
/// load, the single-user baseline before and after, deployed and control arm side by side. Levels
/// are sorted, and 1 is added when missing: the baseline is part of every run. `separate_control`:
/// the control arm has a URL of its own and runs the full plan; without, it repeats the ends of the
/// level range once.
void plan(answer::Experiment& experiment, bool with_control, bool separate_control);

/// Shrinks repeats, levels and prompts evenly until the estimate fits experiment.budget, plans
/// again, and says so in experiment.reduced. `tokens_per_second` is of one user alone; 0 when
/// unknown (nothing is shrunk).
void fit_to_budget(answer::Experiment& experiment, bool with_control, bool separate_control,
                   double tokens_per_second);

/// The requests of one step, in the order in which they are handed to free users: repeat by repeat,
/// shuffled by the seed within each, the same for both arms. Every (prompt, seed, repeat) appears
/// at every level.
std::vector<answer::Request> requests_of(const answer::Experiment& experiment, std::size_t step,
                                         answer::Api api, const std::string& model);

/// The schedule for people, one step a line.
std::string describe(const answer::Experiment& experiment);

/// One step's time from `alone_s`, the seconds of an average answer of a single user: answers x
/// alone_s / c^0.4. The exponent is that of llama-server and of the embedded server on two cores
/// (120 tokens/s alone, 280 for eight).
double estimated_seconds(const answer::Experiment::Step& step, std::size_t prompts, double alone_s);

/// Appends the steps of a batch for the deployed arm. Returns how many steps were added.
std::size_t extend(answer::Experiment& experiment, const answer::Batch& batch);

/// Repeats that a step needs so that `concurrency` users are busy at once.
int repeats_to_fill(int concurrency, std::size_t prompts);

/// The built-in prompts: checkable coverage, lengths from a line to the limit, JSON, lists, facts.
std::vector<answer::Prompt> builtin_prompts();

/// Prompts of a JSONL text (contract section 4). Errors name the line and the field.
base::Result<std::vector<answer::Prompt>> parse_prompts(std::string_view jsonl,
                                                        std::string_view file_name);

}  // namespace fullstop::probe
