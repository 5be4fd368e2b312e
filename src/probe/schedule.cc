// Order of the steps and requests of each. Levels go up and down again, so that every level has the
// same mean position in time and a linear drift of the machine cancels; what is left of it shows
// between the two single-user halves.
#include "probe/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "base/random.h"
#include "base/time.h"

namespace fullstop::probe {
namespace {

using Step = answer::Experiment::Step;

/// A level is split in two visits only where each half still keeps every user busy twice.
constexpr int kWavesPerVisit = 2;

void normalise(std::vector<int>& levels) {
    levels.push_back(1);
    std::ranges::sort(levels);
    const auto [first, last] = std::ranges::unique(levels);
    levels.erase(first, last);
    FULLSTOP_ASSERT(levels.front() == 1, "levels are positive");
}

Step level_step(int concurrency, int first_repeat, int seeds, std::size_t prompts) {
    return {.arm = {},
            .phase = "level",
            .concurrency = concurrency,
            .first_repeat = first_repeat,
            .repeats = std::max(seeds, repeats_to_fill(concurrency, prompts)),
            .seeds = seeds};
}

Step baseline(std::string phase, int repeats) {
    return {.arm = {},
            .phase = std::move(phase),
            .concurrency = 1,
            .first_repeat = 0,
            .repeats = repeats,
            .seeds = repeats};
}

/// One arm's full plan. `levels` are normalised.
std::vector<Step> full_plan(const std::vector<int>& levels, int repeat, std::size_t prompts) {
    std::vector<Step> up, down;
    const int later = repeat / 2;
    const int earlier = repeat - later;
    int single = 0;
    for (const int level : levels) {
        if (level == 1) continue;
        const bool splits = static_cast<std::size_t>(later) * prompts >=
                            static_cast<std::size_t>(level) * kWavesPerVisit;
        if (splits) {
            up.push_back(level_step(level, 0, earlier, prompts));
            down.push_back(level_step(level, earlier, later, prompts));
        } else if (level == levels.back() || single++ % 2 == 0) {
            up.push_back(level_step(level, 0, repeat, prompts));
        } else {
            down.push_back(level_step(level, 0, repeat, prompts));
        }
    }
    std::vector<Step> steps{baseline("baseline_before", repeat)};
    steps.insert(steps.end(), up.begin(), up.end());
    steps.insert(steps.end(), down.rbegin(), down.rend());
    steps.push_back(baseline("baseline_after", repeat));
    return steps;
}

Step of_arm(Step step, const char* arm) {
    step.arm = arm;
    return step;
}

/// What repeats of `experiment` are still free for an extension.
int next_repeat(const answer::Experiment& experiment) {
    int next = 0;
    for (const Step& step : experiment.order)
        next = std::max(next, step.first_repeat + step.repeats);
    return next;
}

std::int64_t seed_of(const answer::Experiment& experiment, const Step& step, int repeat) {
    const int offset = step.first_repeat + (repeat - step.first_repeat) % std::max(step.seeds, 1);
    return static_cast<std::int64_t>(
        static_cast<std::uint64_t>(experiment.seed) +
        static_cast<std::uint64_t>(offset));  // wraps instead of overflowing
}

/// A prompt's id as it may stand in a header and in a file name; the index keeps shortened ones
/// apart.
std::string slug(const std::string& id, std::size_t index) {
    constexpr std::size_t kMaxSlug = 48;
    const auto safe = [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
    };
    if (!id.empty() && id.size() <= kMaxSlug && std::ranges::all_of(id, safe)) return id;
    std::string out = id.substr(0, kMaxSlug);
    for (char& c : out)
        if (!safe(static_cast<unsigned char>(c))) c = '_';
    return fmt::format("{}~{}", out, index);
}

std::string request_id(const Step& step, const std::string& prompt, std::int64_t seed, int repeat) {
    std::string condition = std::to_string(step.concurrency);
    if (step.phase == "baseline_before") condition += "-before";
    if (step.phase == "baseline_after") condition += "-after";
    return fmt::format("{}-{}-{}-s{}-r{}", step.arm, condition, prompt, seed, repeat);
}

/// Prompt indices of one repeat. The arm is left out on purpose: both arms meet the same
/// neighbours.
std::vector<std::size_t> shuffled(const answer::Experiment& experiment, const Step& step,
                                  int repeat) {
    std::vector<std::size_t> order(experiment.prompts.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    base::Random random = base::Random(static_cast<std::uint64_t>(experiment.seed))
                              .fork(static_cast<std::uint64_t>(step.concurrency) * 1'000'003U +
                                    static_cast<std::uint64_t>(repeat));
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    return order;
}

}  // namespace

int repeats_to_fill(int concurrency, std::size_t prompts) {
    FULLSTOP_ASSERT(prompts > 0, "an experiment has prompts");
    return static_cast<int>((static_cast<std::size_t>(concurrency) + prompts - 1) / prompts);
}

void plan(answer::Experiment& experiment, bool with_control, bool separate_control) {
    FULLSTOP_ASSERT(experiment.repeat >= 1 && !experiment.prompts.empty(),
                    "an experiment has prompts and repeats");
    normalise(experiment.levels);
    const std::vector<Step> steps =
        full_plan(experiment.levels, experiment.repeat, experiment.prompts.size());
    const int highest = experiment.levels.back();
    std::vector<Step>& order = experiment.order;
    order.clear();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const bool control_first = with_control && separate_control &&
                                   i >= (steps.size() + 1) / 2;  // mirrored, like the levels
        if (control_first) order.push_back(of_arm(steps[i], "control"));
        order.push_back(of_arm(steps[i], "deployed"));
        if (with_control && separate_control && !control_first)
            order.push_back(of_arm(steps[i], "control"));
        if (!with_control || separate_control) continue;
        if (i == 0) order.push_back(of_arm(baseline("baseline_before", 1), "control"));
        const bool last_visit =
            std::none_of(steps.begin() + static_cast<std::ptrdiff_t>(i) + 1, steps.end(),
                         [&](const Step& s) { return s.concurrency == highest; });
        if (highest > 1 && steps[i].concurrency == highest && last_visit)
            order.push_back(
                of_arm(level_step(highest, 0, 1, experiment.prompts.size()), "control"));
    }
}

std::size_t extend(answer::Experiment& experiment, const answer::Batch& batch) {
    const int first = batch.known_pairs ? 0 : next_repeat(experiment);
    Step loaded = of_arm(
        level_step(batch.concurrency, first, batch.repeats, experiment.prompts.size()), "deployed");
    experiment.order.push_back(std::move(loaded));
    if (!batch.with_alone) return 1;
    Step alone = of_arm(baseline("baseline_after", batch.repeats), "deployed");
    alone.first_repeat = first;
    experiment.order.push_back(std::move(alone));
    return 2;
}

std::vector<answer::Request> requests_of(const answer::Experiment& experiment,
                                         std::size_t step_index, answer::Api api,
                                         const std::string& model) {
    FULLSTOP_ASSERT(step_index < experiment.order.size(), "the step is planned");
    const Step& step = experiment.order[step_index];
    std::vector<answer::Request> requests;
    requests.reserve(experiment.prompts.size() * static_cast<std::size_t>(step.repeats));
    for (int repeat = step.first_repeat; repeat < step.first_repeat + step.repeats; ++repeat) {
        const std::int64_t seed = seed_of(experiment, step, repeat);
        for (const std::size_t index : shuffled(experiment, step, repeat)) {
            const answer::Prompt& prompt = experiment.prompts[index];
            answer::Request request;
            request.id = request_id(step, slug(prompt.id, index), seed, repeat);
            request.arm = step.arm;
            request.concurrency = step.concurrency;
            request.phase = step.phase;
            request.prompt_id = prompt.id;
            request.seed = seed;
            request.repeat = repeat;
            request.api = api;
            request.model = model;
            request.messages = prompt.messages;
            request.max_tokens = prompt.max_tokens ? prompt.max_tokens : experiment.max_tokens;
            request.temperature = experiment.temperature;
            request.top_p = experiment.top_p;
            request.stream = experiment.stream;
            requests.push_back(std::move(request));
        }
    }
    return requests;
}

double estimated_seconds(const Step& step, std::size_t prompts, double alone_s) {
    constexpr double kBatchingGain = 0.4;
    const double answers = static_cast<double>(prompts) * step.repeats;
    return answers * alone_s /
           std::pow(std::min(answers, static_cast<double>(step.concurrency)), kBatchingGain);
}

std::string describe(const answer::Experiment& experiment) {
    std::size_t answers = 0;
    std::string steps;
    for (std::size_t i = 0; i < experiment.order.size(); ++i) {
        const Step& step = experiment.order[i];
        const std::size_t here = experiment.prompts.size() * static_cast<std::size_t>(step.repeats);
        answers += here;
        const char* phase = step.phase == "baseline_before"  ? "alone, before the load"
                            : step.phase == "baseline_after" ? "alone, after the load"
                                                             : "";
        steps += fmt::format(
            "{:>4}  {:<8}  {:>4} at once  {:>4} answers  seeds {}..{}{}{}\n", i + 1, step.arm,
            step.concurrency, here, experiment.seed + step.first_repeat,
            experiment.seed + step.first_repeat + step.seeds - 1, *phase ? "  " : "", phase);
    }
    std::string head = fmt::format(
        "{} answers: {} prompts, {} seeds each; temperature {}, {}, budget {:.0f} s\n", answers,
        experiment.prompts.size(), experiment.repeat,
        experiment.temperature ? fmt::format("{}", *experiment.temperature) : "left to the server",
        experiment.max_tokens ? fmt::format("at most {} tokens", experiment.max_tokens->count)
                              : "token limit left to the server",
        base::to_seconds(experiment.budget));
    if (experiment.reduced) head += "reduced: " + *experiment.reduced + "\n";
    return head + steps;
}

}  // namespace fullstop::probe
