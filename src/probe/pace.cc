// Costs are per level where the level has been seen, else from a single user's mean answer and the
// batching gain.
#include "probe/pace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "probe/limits.h"
#include "probe/schedule.h"

namespace fullstop::probe {

using Step = answer::Experiment::Step;

void Pace::answered(int concurrency, double seconds) {
    per_answer_[concurrency].seconds += seconds;
    per_answer_[concurrency].answers += 1;
}

void Pace::step_done(int concurrency, std::size_t answers, double seconds) {
    per_step_[concurrency].seconds += seconds;
    per_step_[concurrency].answers += static_cast<double>(answers);
}

double Pace::alone_s() const {
    const auto alone = per_answer_.find(1);
    return alone == per_answer_.end() || alone->second.answers == 0
               ? 0
               : alone->second.seconds / alone->second.answers;
}

double Pace::cost(const Step& step, std::size_t prompts) const {
    const auto seen = per_step_.find(step.concurrency);
    if (seen == per_step_.end() || seen->second.answers == 0)
        return estimated_seconds(step, prompts, alone_s());
    return static_cast<double>(prompts) * step.repeats * seen->second.seconds /
           seen->second.answers;
}

double Pace::cost(const answer::Experiment& experiment, std::size_t from_step,
                  std::size_t prompts) const {
    double seconds = 0;
    for (std::size_t i = from_step; i < experiment.order.size(); ++i)
        seconds += cost(experiment.order[i], prompts);
    return seconds;
}

int repeats_left(const answer::Experiment& experiment, std::size_t from_step) {
    int left = 0;
    for (std::size_t i = from_step; i < experiment.order.size(); ++i)
        left = std::max(left, experiment.order[i].first_repeat + experiment.order[i].seeds);
    return left;
}

bool keep_repeats(answer::Experiment& experiment, std::size_t from_step, int keep,
                  std::size_t prompts) {
    bool changed = false;
    std::vector<Step>& order = experiment.order;
    for (std::size_t i = from_step; i < order.size();) {
        Step& step = order[i];
        if (step.first_repeat >= keep) {
            order.erase(order.begin() + static_cast<std::ptrdiff_t>(i));
            changed = true;
            continue;
        }
        if (step.first_repeat + step.seeds > keep) {
            step.seeds = keep - step.first_repeat;
            step.repeats = std::max(step.seeds, repeats_to_fill(step.concurrency, prompts));
            changed = true;
        }
        ++i;
    }
    return changed;
}

bool drop_middle_level(answer::Experiment& experiment, std::size_t from_step) {
    std::set<int> levels;
    for (std::size_t i = from_step; i < experiment.order.size(); ++i)
        if (experiment.order[i].concurrency > 1) levels.insert(experiment.order[i].concurrency);
    if (levels.empty() || (levels.size() == 1 && *levels.begin() == experiment.levels.back()))
        return false;
    levels.erase(experiment.levels.back());
    if (levels.empty()) return false;
    const int victim = *std::next(levels.begin(), static_cast<std::ptrdiff_t>(levels.size() / 2));
    const auto gone = std::remove_if(
        experiment.order.begin() + static_cast<std::ptrdiff_t>(from_step), experiment.order.end(),
        [&](const Step& step) { return step.concurrency == victim; });
    experiment.order.erase(gone, experiment.order.end());
    return true;
}

std::string shape_of(const answer::Experiment& experiment, std::size_t prompts, int repeats) {
    std::set<int> levels;
    for (const Step& step : experiment.order) levels.insert(step.concurrency);
    return fmt::format("{} prompts x {} {} at {}", prompts, repeats,
                       repeats == 1 ? "seed" : "seeds", fmt::join(levels, ", "));
}

void fit_to_budget(answer::Experiment& experiment, bool with_control, bool separate_control,
                   double tokens_per_second) {
    if (experiment.order.empty()) plan(experiment, with_control, separate_control);
    if (tokens_per_second <= 0) return;
    double tokens = 0;
    for (const answer::Prompt& prompt : experiment.prompts) {
        const auto limit = prompt.max_tokens ? prompt.max_tokens : experiment.max_tokens;
        tokens += kExpectedShare * static_cast<double>(limit ? limit->count : kTokensWhenOmitted);
    }
    const double alone_s =
        tokens / static_cast<double>(experiment.prompts.size()) / tokens_per_second;
    const auto cost = [&] {
        double seconds = 0;
        for (const Step& step : experiment.order)
            seconds += estimated_seconds(step, experiment.prompts.size(), alone_s);
        return seconds;
    };
    const double planned_s = cost();
    const double budget_s = base::to_seconds(experiment.budget);
    if (planned_s <= budget_s) return;
    const std::string planned = shape_of(experiment, experiment.prompts.size(), experiment.repeat);
    while (cost() > budget_s) {
        if (experiment.repeat > 1) {
            --experiment.repeat;
        } else if (experiment.levels.size() > 2) {
            experiment.levels.erase(experiment.levels.begin() +
                                    static_cast<std::ptrdiff_t>(experiment.levels.size() / 2));
        } else if (experiment.prompts.size() > kLeastPrompts) {
            // From the middle outwards in turn, so that what is left still holds every kind a
            // sorted set offers.
            experiment.prompts.erase(experiment.prompts.begin() +
                                     static_cast<std::ptrdiff_t>(experiment.prompts.size() / 2));
        } else {
            break;
        }
        plan(experiment, with_control, separate_control);
    }
    const double left_s = cost();
    experiment.reduced = fmt::format(
        "{} would take about {:.0f} s at {:.3g} tokens/s, the budget is {:.0f} s: planned {} "
        "(about {:.0f} s{})",
        planned, planned_s, tokens_per_second, budget_s,
        shape_of(experiment, experiment.prompts.size(), experiment.repeat), left_s,
        left_s > budget_s ? "; the budget may end it early" : "");
}

}  // namespace fullstop::probe
