// The experiment as a value: which steps (arm, phase, concurrency) in which order, and which requests in each step.
// Pure and fixed before the first request; --dry-run prints it, and a seed repeats it.
#pragma once

#include <string>
#include <vector>

#include "answer/run.h"
#include "base/result.h"

namespace fullstop::probe {

/// Fills experiment.order: levels interleaved so that drift cannot pose as load, the single-user baseline before and
/// after, deployed and control arm side by side. `separate_control`: the control arm has a URL of its own and runs the
/// full plan; without, it repeats the ends of the level range once.
void plan(answer::Experiment& experiment, bool with_control, bool separate_control);

/// Shrinks prompts, repeats and levels evenly until the estimate fits experiment.budget, and says so in
/// experiment.reduced. `tokens_per_second` is of one user alone; 0 when unknown (nothing is shrunk).
void fit_to_budget(answer::Experiment& experiment, bool with_control, bool separate_control, double tokens_per_second);

/// The requests of one step, in the order in which they are handed to free users. Every (prompt, seed, repeat) appears
/// at every level.
std::vector<answer::Request> requests_of(const answer::Experiment& experiment, std::size_t step, answer::Api api, const std::string& model);

/// The schedule for people, one step a line.
std::string describe(const answer::Experiment& experiment);

/// The built-in prompts: checkable coverage, lengths from a line to the limit, JSON, lists, facts.
std::vector<answer::Prompt> builtin_prompts();

/// Prompts of a JSONL text (contract section 4). Errors name the line and the field.
base::Result<std::vector<answer::Prompt>> parse_prompts(std::string_view jsonl, std::string_view file_name);

}  // namespace fullstop::probe
