// What is left out of the plan when it turns out not to fit the budget: first repeats, then middle
// levels, then prompts that nobody has run yet.
#include <fmt/format.h>

#include <algorithm>

#include "probe/closed_loop.h"
#include "probe/limits.h"
#include "probe/schedule.h"

namespace fullstop::probe {

double ClosedLoop::budget_left_s(base::Instant at) const {
    return base::to_seconds(run.experiment.budget - options.budget_used - (at - origin));
}

/// Of this step's unsent requests and the steps after it.
double ClosedLoop::needed_s() const {
    double seconds = pace.cost(run.experiment, step + 1, prompts_left());
    if (step < run.experiment.order.size() && !pending.empty()) {
        const double whole = pace.cost(run.experiment.order[step], prompts_left());
        const auto planned =
            static_cast<double>(prompts_left()) * run.experiment.order[step].repeats;
        seconds += whole * std::min(1.0, static_cast<double>(pending.size()) / planned);
    } else if (flights.empty() && step < run.experiment.order.size()) {
        seconds += pace.cost(run.experiment.order[step], prompts_left());
    }
    return seconds;
}

/// Shrinks what is left until it fits. Waits until every prompt has been answered once, or a fifth
/// of the budget is gone.
void ClosedLoop::trim(base::Instant at) {
    if (budget_over || pace.alone_s() <= 0 || step >= experiment().order.size()) return;
    const double left_s = budget_left_s(at);
    const bool all_seen = static_cast<std::size_t>(progress.done) >= prompts_left();
    const bool early =
        left_s * kEarlyTrimShare < base::to_seconds(experiment().budget) * (kEarlyTrimShare - 1);
    if ((!all_seen && !early) || needed_s() <= left_s) return;
    if (!planned_shape)
        planned_shape =
            shape_of(experiment(), experiment().prompts.size(), repeats_left(experiment(), 0));
    const std::size_t from = pending.empty() && flights.empty() ? step : step + 1;
    bool changed = false;
    while (needed_s() > left_s) {
        const int keep = kept_repeats.value_or(repeats_left(experiment(), 0)) - 1;
        if (keep >= 1) {
            kept_repeats = keep;
            keep_repeats(experiment(), from, keep, prompts_left());
            if (from > step) drop_pending(keep);
        } else if (!drop_middle_level(experiment(), from) && !drop_prompt()) {
            changed = cut_baseline_short() || changed;
            break;
        }
        changed = true;
    }
    if (changed) say_reduced(left_s);
}

/// Of the step under way: its unsent repeats from `keep` on, but for those that keep its users
/// busy.
void ClosedLoop::drop_pending(int keep) {
    const int filled =
        current().first_repeat + repeats_to_fill(current().concurrency, prompts_left());
    std::erase_if(pending, [&](const answer::Request& request) {
        return request.repeat >= std::max(keep, filled);
    });
}

/// A prompt that nobody has run yet goes from every level, unless a level would then have fewer
/// answers than users: it would not be the load that it is called.
bool ClosedLoop::drop_prompt() {
    if (prompts_left() <= kLeastPrompts) return false;
    for (std::size_t i = step; i < experiment().order.size(); ++i)
        if ((prompts_left() - 1) * static_cast<std::size_t>(experiment().order[i].repeats) <
            static_cast<std::size_t>(experiment().order[i].concurrency))
            return false;
    const auto unseen = std::find_if(experiment().prompts.rbegin(), experiment().prompts.rend(),
                                     [&](const answer::Prompt& prompt) {
                                         return !prompts_seen.contains(prompt.id) &&
                                                !prompts_dropped.contains(prompt.id);
                                     });
    if (unseen == experiment().prompts.rend()) return false;
    prompts_dropped.insert(unseen->id);
    std::erase_if(pending,
                  [&](const answer::Request& request) { return request.prompt_id == unseen->id; });
    return true;
}

/// Rather a few baselines and the highest level than all of them and no level at all.
bool ClosedLoop::cut_baseline_short() {
    if (current().phase != "baseline_before" || pending.empty() ||
        step_answers + flights.size() < kLeastPrompts)
        return false;
    run.notes.push_back(
        fmt::format("The machine is slow: {} prompts have no baseline alone, so that there is time "
                    "for the highest level.",
                    pending.size()));
    pending.clear();
    return true;
}

void ClosedLoop::say_reduced(double left_s) {
    experiment().reduced = fmt::format(
        "planned {}; an answer alone takes {:.1f} s and the budget had {:.0f} s left after {} "
        "answers, so the rest became {}",
        *planned_shape, pace.alone_s(), left_s, progress.done,
        shape_of(experiment(), prompts_left(),
                 kept_repeats.value_or(repeats_left(experiment(), 0))));
}

}  // namespace fullstop::probe
