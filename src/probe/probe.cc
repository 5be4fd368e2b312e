// Users, steps and the budget. A user is a flight and whoever takes the next request when it has
// ended; a step ends when all its requests have. What happens inside a flight is flight.cc, what to
// leave out when time runs short is pace.cc.
#include "probe/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "answer/finish_word.h"
#include "base/assert.h"
#include "net/limits.h"
#include "probe/flight.h"
#include "probe/limits.h"
#include "probe/pace.h"
#include "probe/schedule.h"

namespace fullstop::probe {
namespace {

using Step = answer::Experiment::Step;

// Connections count from kFirstConnection, their timers are 2 x id and above; these stay below
// them.
constexpr net::TimerId kBudgetTimer = 0;
constexpr net::TimerId kStaggerTimer = 1;
constexpr net::ConnectionId kFirstConnection = 1;

bool has_answer(const answer::Record& record) {
    if (record.text_events > 0 || !record.text.empty()) return true;
    return record.status && *record.status < 400 &&
           record.end.transport == answer::Transport::kClean && !record.end.error;
}

enum class Ending { kNatural, kLimited, kCut };

/// For the live display only; the verdict is judge's.
Ending ending_of(const answer::Record& record) {
    const answer::EndFacts& end = record.end;
    if (!end.reason || end.error || end.transport != answer::Transport::kClean) return Ending::kCut;
    switch (answer::finish_kind(*end.reason)) {
        case answer::FinishKind::kStop:
        case answer::FinishKind::kStopString:
        case answer::FinishKind::kToolCalls: return Ending::kNatural;
        case answer::FinishKind::kLength: return Ending::kLimited;
        default: return Ending::kCut;
    }
}

net::Endpoint endpoint_of(const wire::ServerUrl& url) { return {url.host, url.port, url.tls}; }

}  // namespace

struct Probe::State {
    State(answer::Run& the_run, Options the_options)
        : run(the_run), options(std::move(the_options)) {}

    answer::Run& run;
    Options options;
    base::Instant origin{};
    bool done = false;

    std::size_t step = 0;           ///< index into experiment.order
    std::size_t planned_steps = 0;  ///< before extensions
    int extensions = 0;
    std::deque<answer::Request> pending;
    std::map<net::ConnectionId, std::unique_ptr<Flight>> flights;
    net::ConnectionId next_id = kFirstConnection;
    int users = 0;          ///< of this step
    int users_started = 0;  ///< fewer than `users` while a staggered start is under way
    base::Instant step_started{};
    std::size_t step_answers = 0;  ///< ended in this step
    std::size_t step_refused = 0;  ///< of them, without a connection
    std::size_t step_empty = 0;    ///< of them, without any answer

    Pace pace;
    std::set<std::string> prompts_seen;
    std::set<std::string> prompts_dropped;
    std::optional<std::string> planned_shape;  ///< as it was before the first trim
    std::optional<int> kept_repeats;  ///< after a trim: repeats from this one on are left out
    bool budget_over = false;
    Progress progress;

    answer::Experiment& experiment() { return run.experiment; }
    const Step& current() const { return run.experiment.order[step]; }
    std::size_t prompts_left() const {
        return run.experiment.prompts.size() - prompts_dropped.size();
    }
    bool control(const std::string& arm) const { return arm == "control"; }

    void start(base::Instant now, net::Actions& out);
    void begin_step(base::Instant at, net::Actions& out);
    void launch(base::Instant at, net::Actions& out);
    void stagger(base::Instant at, net::Actions& out);
    void on_connection(net::ConnectionId id, const net::Event& event, net::Actions& out);
    void flight_over(base::Instant at, Flight& flight);
    void end_step(base::Instant at, net::Actions& out);
    bool server_is_gone();
    void drop_arm(const std::string& arm);
    void all_done(base::Instant at, net::Actions& out);
    bool extend_plan(base::Instant at);
    void interrupted(base::Instant at, net::Actions& out);
    void on_timer(net::TimerId id, const net::Event& event, net::Actions& out);
    void budget_fired(base::Instant at, net::Actions& out);
    void abandon_all(base::Instant at, net::Actions& out);
    double budget_left_s(base::Instant at) const;
    double needed_s() const;
    void trim(base::Instant at);
    void drop_pending(int keep);
    bool drop_prompt();
    void say_reduced(double left_s);
    void tell(base::Instant at);
};

void Probe::State::start(base::Instant now, net::Actions& out) {
    FULLSTOP_ASSERT(!run.experiment.order.empty(), "the experiment is planned");
    origin = now;
    planned_steps = experiment().order.size();
    if (budget_left_s(now) <= 0) {
        run.notes.push_back(
            "The budget was used up before the first request: nothing was measured. Give a larger "
            "--budget.");
        return all_done(now, out);
    }
    out.emplace_back(net::SetTimer{kBudgetTimer, now + experiment().budget - options.budget_used});
    begin_step(now, out);
}

void Probe::State::begin_step(base::Instant at, net::Actions& out) {
    for (;; ++step) {
        if (step >= experiment().order.size() && !extend_plan(at)) return all_done(at, out);
        trim(at);
        if (step >= experiment().order.size()) return all_done(at, out);
        for (answer::Request& request : requests_of(experiment(), step, options.api, options.model))
            if (!prompts_dropped.contains(request.prompt_id)) pending.push_back(std::move(request));
        if (!pending.empty()) break;
    }
    step_started = at;
    step_answers = step_refused = step_empty = 0;
    users = static_cast<int>(
        std::min<std::size_t>(static_cast<std::size_t>(current().concurrency), pending.size()));
    users_started = 0;
    tell(at);
    if (experiment().stagger > base::Duration::zero()) return stagger(at, out);
    for (; users_started < users; ++users_started) launch(at, out);
}

/// The next user of a staggered start comes in.
void Probe::State::stagger(base::Instant at, net::Actions& out) {
    if (pending.empty() || users_started >= users) return;
    ++users_started;
    launch(at, out);
    if (users_started < users)
        out.emplace_back(net::SetTimer{kStaggerTimer, at + experiment().stagger});
}

void Probe::State::launch(base::Instant at, net::Actions& out) {
    if (pending.empty()) return;
    answer::Request request = std::move(pending.front());
    pending.pop_front();
    prompts_seen.insert(request.prompt_id);
    const wire::ServerUrl& url = control(request.arm) ? options.control_url : options.url;
    std::string text = wire::request_text(request, url, options.headers);
    Flight::Limits limits;
    if (!control(request.arm))
        limits = {.deadline = experiment().client_deadline, .idle = experiment().client_idle};
    const net::ConnectionId id = next_id++;
    auto& flight = flights[id] = std::make_unique<Flight>(std::move(request), id, limits, origin);
    flight->start(at, endpoint_of(url), std::move(text), out);
}

void Probe::State::on_connection(net::ConnectionId id, const net::Event& event, net::Actions& out) {
    const auto found = flights.find(id);
    if (found == flights.end()) return;  // closed by us while the event was on its way
    found->second->on(event, out);
    if (!found->second->over()) return;
    const std::unique_ptr<Flight> over = std::move(found->second);
    flights.erase(found);
    flight_over(event.at, *over);
    trim(event.at);
    launch(event.at, out);
    if (flights.empty() && pending.empty()) end_step(event.at, out);
}

void Probe::State::flight_over(base::Instant at, Flight& flight) {
    answer::Record record = flight.take();
    ++step_answers;
    if (record.end.transport == answer::Transport::kRefused) ++step_refused;
    if (!has_answer(record)) ++step_empty;
    if (record.timeline.started && record.timeline.ended)
        pace.answered(record.request.concurrency,
                      base::to_seconds(*record.timeline.ended - *record.timeline.started));
    ++progress.done;
    switch (ending_of(record)) {
        case Ending::kNatural: ++progress.natural; break;
        case Ending::kLimited: ++progress.limited; break;
        case Ending::kCut: ++progress.cut; break;
    }
    if (options.answer_ended) options.answer_ended(record);
    run.records.push_back(std::move(record));
    tell(at);
}

void Probe::State::end_step(base::Instant at, net::Actions& out) {
    pace.step_done(current().concurrency, step_answers, base::to_seconds(at - step_started));
    if (budget_over) return all_done(at, out);
    if (server_is_gone()) return all_done(at, out);
    ++step;
    begin_step(at, out);
}

/// A whole step without a connection, or a single user who never got an answer: going on would only
/// hammer. For the control arm alone it ends that arm.
bool Probe::State::server_is_gone() {
    const Step ended = current();
    const bool refused = step_answers > 0 && step_refused == step_answers;
    const bool empty_alone =
        step_answers > 0 && step_empty == step_answers && ended.concurrency == 1;
    if (!refused && !empty_alone) return false;
    std::string what =
        refused ? fmt::format("none of the {} requests of the {} arm at {} at once could connect",
                              step_answers, ended.arm, ended.concurrency)
                : fmt::format("none of the {} requests of a single user got an answer ({} arm)",
                              step_answers, ended.arm);
    if (control(ended.arm)) {
        drop_arm(ended.arm);
        run.notes.push_back("The control arm was left out from there on: " + what + ".");
        return false;
    }
    run.notes.push_back("Stopped early: " + what + ".");
    return true;
}

void Probe::State::drop_arm(const std::string& arm) {
    auto& order = experiment().order;
    const auto gone = std::remove_if(order.begin() + static_cast<std::ptrdiff_t>(step) + 1,
                                     order.end(), [&](const Step& s) { return s.arm == arm; });
    order.erase(gone, order.end());
}

/// Asks for more repeats, as many as the budget has room for. False when there is nothing more to
/// do.
bool Probe::State::extend_plan(base::Instant at) {
    if (!options.more_repeats || budget_over) return false;
    run.elapsed = at - origin;
    const int wanted = options.more_repeats(run);
    int repeats = extensions < kMaxExtensions ? std::max(wanted, 0) : 0;
    for (; repeats > 0; --repeats) {
        answer::Experiment longer = experiment();
        extend(longer, repeats);
        if (pace.cost(longer, experiment().order.size(), prompts_left()) <= budget_left_s(at))
            break;
    }
    if (repeats == 0) {
        if (wanted > 0)
            run.notes.push_back(
                fmt::format("{} more {} of every prompt would make the verdict firm; {}.", wanted,
                            wanted == 1 ? "repeat" : "repeats",
                            extensions < kMaxExtensions
                                ? "the budget has no room for one. Give a larger --budget"
                                : "give a larger --repeat"));
        return false;
    }
    ++extensions;
    kept_repeats.reset();
    extend(experiment(), repeats);
    run.notes.push_back(fmt::format("Extended by {} {} at every level to make the verdict firm.",
                                    repeats, repeats == 1 ? "seed" : "seeds"));
    return true;
}

void Probe::State::all_done(base::Instant at, net::Actions& out) {
    run.elapsed = at - origin;
    out.emplace_back(net::CancelTimer{kBudgetTimer});
    out.emplace_back(net::CancelTimer{kStaggerTimer});
    done = true;
    tell(at);
}

void Probe::State::interrupted(base::Instant at, net::Actions& out) {
    run.interrupted = true;
    pending.clear();
    abandon_all(at, out);
    all_done(at, out);
}

void Probe::State::abandon_all(base::Instant at, net::Actions& out) {
    auto open = std::exchange(flights, {});
    for (auto& [id, flight] : open) {
        flight->abandon(at, out);
        flight_over(at, *flight);
    }
}

void Probe::State::on_timer(net::TimerId id, const net::Event& event, net::Actions& out) {
    if (id == kBudgetTimer) return budget_fired(event.at, out);
    if (id == kStaggerTimer) return stagger(event.at, out);
    on_connection(id / 2, event, out);
}

/// First: no request starts any more. Second, after the grace: what still runs is closed.
void Probe::State::budget_fired(base::Instant at, net::Actions& out) {
    if (budget_over) {
        run.notes.push_back(
            fmt::format("{} answers still ran {:.0f} s after the budget's end and were closed by "
                        "us; they say nothing about the server.",
                        flights.size(),
                        base::to_seconds(std::max<base::Duration>(experiment().budget / kGraceShare,
                                                                  kLeastGrace))));
        abandon_all(at, out);
        return end_step(at, out);
    }
    budget_over = true;
    std::size_t unsent = pending.size();
    for (std::size_t i = step + 1; i < experiment().order.size(); ++i)
        unsent += prompts_left() * static_cast<std::size_t>(experiment().order[i].repeats);
    pending.clear();
    if (unsent > 0) {
        std::string text =
            fmt::format("the budget of {:.0f} s ended the plan: {} requests were not sent",
                        base::to_seconds(experiment().budget), unsent);
        experiment().reduced = experiment().reduced ? *experiment().reduced + "; " + text : text;
        run.notes.push_back("The plan was not finished: " + text + ". Give a larger --budget.");
        experiment().order.resize(step + 1);
    }
    if (flights.empty()) return end_step(at, out);
    out.emplace_back(net::SetTimer{
        kBudgetTimer,
        at + std::max<base::Duration>(experiment().budget / kGraceShare, kLeastGrace)});
}

double Probe::State::budget_left_s(base::Instant at) const {
    return base::to_seconds(run.experiment.budget - options.budget_used - (at - origin));
}

/// Of this step's unsent requests and the steps after it.
double Probe::State::needed_s() const {
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
void Probe::State::trim(base::Instant at) {
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
            break;
        }
        changed = true;
    }
    if (changed) say_reduced(left_s);
}

/// Of the step under way: its unsent repeats from `keep` on, but for those that keep its users
/// busy.
void Probe::State::drop_pending(int keep) {
    const int filled =
        current().first_repeat + repeats_to_fill(current().concurrency, prompts_left());
    std::erase_if(pending, [&](const answer::Request& request) {
        return request.repeat >= std::max(keep, filled);
    });
}

/// A prompt that nobody has run yet goes from every level, unless a level would then have fewer
/// answers than users: it would not be the load that it is called.
bool Probe::State::drop_prompt() {
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

void Probe::State::say_reduced(double left_s) {
    experiment().reduced = fmt::format(
        "planned {}; an answer alone takes {:.1f} s and the budget had {:.0f} s left after {} "
        "answers, so the rest became {}",
        *planned_shape, pace.alone_s(), left_s, progress.done,
        shape_of(experiment(), prompts_left(),
                 kept_repeats.value_or(repeats_left(experiment(), 0))));
}

void Probe::State::tell(base::Instant at) {
    if (!options.progress) return;
    progress.steps = experiment().order.size();
    progress.step = std::min(step, std::max<std::size_t>(progress.steps, 1) - 1);
    if (step < progress.steps) {
        progress.arm = current().arm;
        progress.phase = current().phase;
        progress.concurrency = current().concurrency;
    }
    std::size_t to_come = pending.size() + flights.size();
    for (std::size_t i = step + 1; i < progress.steps; ++i)
        to_come += prompts_left() * static_cast<std::size_t>(experiment().order[i].repeats);
    progress.planned = progress.done + static_cast<int>(done ? 0 : to_come);
    progress.elapsed = at - origin;
    progress.left =
        done || pace.alone_s() <= 0 ? base::Duration{} : base::from_ms(needed_s() * 1e3);
    progress.extension = step >= planned_steps;
    options.progress(progress);
}

Probe::Probe(answer::Run& run, Options options)
    : state_(std::make_unique<State>(run, std::move(options))) {}
Probe::~Probe() = default;

void Probe::start(base::Instant now, net::Actions& out) { state_->start(now, out); }

void Probe::on(const net::Event& event, net::Actions& out) {
    if (state_->done) return;
    if (std::holds_alternative<net::Interrupted>(event.what))
        return state_->interrupted(event.at, out);
    if (const auto* fired = std::get_if<net::TimerFired>(&event.what))
        return state_->on_timer(fired->id, event, out);
    const net::ConnectionId id = std::visit(
        [](const auto& what) -> net::ConnectionId {
            if constexpr (requires { what.id; })
                return what.id;
            else
                return 0;
        },
        event.what);
    state_->on_connection(id, event, out);
}

bool Probe::done() const { return state_->done; }

}  // namespace fullstop::probe
