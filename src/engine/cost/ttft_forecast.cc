// Each leap ends at the next event, so there are at most about three for each answer.
#include "engine/cost/ttft_forecast.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "engine/limits.h"
#include "engine/scheduling/ranking.h"

namespace fullstop::engine {
namespace {

using base::Blocks;
using base::Duration;
using base::Tokens;

class Forecast {
public:
    Forecast(ForecastState state, const Pacing& pacing, const CostModel& cost,
             std::optional<Duration> itl_target)
        : state_(std::move(state)),
          waiting_(state_.waiting.begin(), state_.waiting.end()),
          pacing_(pacing),
          cost_(cost),
          itl_target_(itl_target) {
        if (!waiting_.empty()) waiting_.back().measured = true;
    }

    Duration run() {
        for (std::size_t i = 0; i < kMostForecastLeaps && !done_; ++i) {
            admit();
            if (state_.running.empty()) break;
            leap();
            std::erase_if(state_.running, [](const Course& course) {
                return course.prompt_left.count == 0 && course.output_left.count <= 0;
            });
        }
        return time_;
    }

private:
    void admit() {
        while (!waiting_.empty() && make_place(waiting_.front())) {
            state_.running.push_back(waiting_.front());
            waiting_.pop_front();
        }
    }

    /// As Engine::make_place: lower classes may be paused. They come back behind the one in
    /// question, so they are gone.
    bool make_place(const Course& head) {
        std::size_t stay = state_.running.size();
        while (!fits(head, stay)) {
            if (stay == 0) break;  // with nobody beside it, it always fits
            if (!Ranking::outranks(head.priority,
                                   {.level = state_.running[stay - 1].level, .due = {}}))
                return false;
            --stay;
        }
        state_.running.resize(stay);
        return true;
    }

    bool fits(const Course& head, std::size_t beside) const {
        if (std::cmp_greater_equal(beside, state_.places)) return false;
        Blocks all = base::blocks_for(head.demand, state_.block);
        for (std::size_t i = 0; i < beside; ++i)
            all += base::blocks_for(state_.running[i].demand, state_.block);
        return all <= base::blocks_for(state_.pool, state_.block);
    }

    void leap() {
        Tokens shortest{0};
        bool decodes = false;
        std::vector<Course*> prompts;
        used_ = {};
        for (Course& course : state_.running) {
            used_ += course.in_kv;
            if (course.prompt_left.count > 0) {
                prompts.push_back(&course);
                continue;
            }
            shortest = decodes ? std::min(shortest, course.output_left) : course.output_left;
            decodes = true;
        }
        if (prompts.empty()) return decode(std::max<std::int64_t>(1, shortest.count));
        const Tokens budget =
            !decodes || pacing_.knows() ? kPrefillRowsAlone : kPrefillRowsBesideDecodes;
        const Tokens rows = rows_of(*prompts.front(), budget, decodes);
        std::int64_t steps = prompts.front()->prompt_left.count / rows.count;
        if (decodes) steps = std::min(steps, shortest.count);
        if (prompts.front()->prompt_left > rows && steps > 0)
            prefill(*prompts.front(), rows, steps);
        else
            prefill_several(prompts, budget, decodes);
    }

    Tokens rows_of(const Course& prompt, Tokens budget, bool decodes) const {
        const Tokens most = std::min(prompt.prompt_left, budget);
        if (!decodes || !pacing_.knows()) return most;
        return pacing_.prompt_rows(next_tokens(0), prompt.in_kv, most, *itl_target_,
                                   used_ - prompt.in_kv);
    }

    /// The rows of all that decode, `ahead` tokens from now.
    StepShape next_tokens(std::int64_t ahead) const {
        StepShape shape(state_.streams);
        for (const Course& course : state_.running)
            if (course.prompt_left.count == 0)
                shape.add(rows_at(course.in_kv + Tokens{ahead}, 1, true, foreign(course)));
        return shape;
    }
    Tokens foreign(const Course& course) const {
        return state_.streams ? Tokens{} : used_ - course.in_kv;
    }

    void decode(std::int64_t steps) {
        pass(steps, next_tokens(steps / 2));
        advance(steps);
    }

    void prefill(Course& prompt, Tokens rows, std::int64_t steps) {
        StepShape shape = next_tokens(steps / 2);
        shape.add(rows_at(prompt.in_kv + Tokens{rows.count * (steps / 2)}, rows.count, false,
                          foreign(prompt)));
        pass(steps, shape);
        advance(steps);
        read(prompt, {rows.count * steps});
    }

    /// One step with as many prompts as its budget holds.
    void prefill_several(const std::vector<Course*>& prompts, Tokens budget, bool decodes) {
        StepShape shape = next_tokens(0);
        std::vector<std::pair<Course*, Tokens>> taken;
        for (Course* prompt : prompts) {
            if (budget.count == 0) break;
            const Tokens rows = rows_of(*prompt, budget, decodes);
            shape.add(
                rows_at(prompt->in_kv, rows.count, rows == prompt->prompt_left, foreign(*prompt)));
            taken.emplace_back(prompt, rows);
            budget -= rows;
            if (rows < prompt->prompt_left) break;
        }
        pass(1, shape);
        advance(1);
        for (const auto& [prompt, rows] : taken) read(*prompt, rows);
    }

    void pass(std::int64_t steps, const StepShape& shape) {
        time_ += cost_.estimate(shape) * steps;
    }

    /// Everybody that decodes makes `steps` tokens.
    void advance(std::int64_t steps) {
        for (Course& course : state_.running) {
            if (course.prompt_left.count > 0) continue;
            course.in_kv += Tokens{steps};
            course.output_left -= Tokens{steps};
        }
    }

    void read(Course& prompt, Tokens rows) {
        prompt.in_kv += rows;
        prompt.prompt_left -= rows;
        if (prompt.prompt_left.count > 0) return;
        prompt.output_left -= Tokens{1};
        done_ = done_ || prompt.measured;
    }

    ForecastState state_;
    std::deque<Course> waiting_;
    const Pacing& pacing_;
    const CostModel& cost_;
    std::optional<Duration> itl_target_;
    Tokens used_{};
    Duration time_{};
    bool done_ = false;
};

}  // namespace

Duration forecast_ttft(ForecastState state, const Pacing& pacing, const CostModel& cost,
                       std::optional<Duration> itl_target) {
    return Forecast(std::move(state), pacing, cost, itl_target).run();
}

}  // namespace fullstop::engine
