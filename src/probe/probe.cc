// Users, steps and the budget. A user is a flight and whoever takes the next request when it has
// ended; a step ends when all its requests have. flight.cc says what happens inside a flight,
// trim.cc what is left out when time runs short.
#include "probe/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "answer/finish_word.h"
#include "base/assert.h"
#include "net/limits.h"
#include "probe/closed_loop.h"
#include "probe/limits.h"
#include "probe/schedule.h"

namespace fullstop::probe {
namespace {

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

/// Short runs give it a larger share: eight users' first answers may be all that there is.
base::Duration grace(const answer::Experiment& experiment) {
    const base::Duration quarter =
        std::min<base::Duration>(experiment.budget / kQuarter, kMostOfShortRuns);
    return std::max<base::Duration>({experiment.budget / kGraceShare, quarter, kLeastGrace});
}

net::Endpoint endpoint_of(const wire::ServerUrl& url) { return {url.host, url.port, url.tls}; }

}  // namespace

void ClosedLoop::start(base::Instant now, net::Actions& out) {
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

void ClosedLoop::begin_step(base::Instant at, net::Actions& out) {
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
    const int admission = admitted();
    if (admission < current().concurrency) experiment().order[step].admitted = admission;
    users = static_cast<int>(
        std::min<std::size_t>(static_cast<std::size_t>(admission), pending.size()));
    users_started = 0;
    tell(at);
    if (experiment().stagger > base::Duration::zero()) return stagger(at, out);
    for (; users_started < users; ++users_started) launch(at, out);
}

/// A control arm on the same URL has fixed admission: no more requests in flight than at the last
/// level that lost nothing, while the other users wait here.
int ClosedLoop::admitted() const {
    const int all = current().concurrency;
    if (!control(current().arm) || options.separate_control || cut_at.empty()) return all;
    int last = 1;
    for (const int level : run.experiment.levels)
        if (level < *cut_at.begin()) last = level;
    return std::min(last, all);
}

/// The next user of a staggered start comes in.
void ClosedLoop::stagger(base::Instant at, net::Actions& out) {
    if (pending.empty() || users_started >= users) return;
    ++users_started;
    launch(at, out);
    if (users_started < users)
        out.emplace_back(net::SetTimer{kStaggerTimer, at + experiment().stagger});
}

void ClosedLoop::launch(base::Instant at, net::Actions& out) {
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

void ClosedLoop::on_connection(net::ConnectionId id, const net::Event& event, net::Actions& out) {
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

void ClosedLoop::flight_over(base::Instant at, Flight& flight) {
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
        case Ending::kCut:
            ++progress.cut;
            if (!control(record.request.arm)) cut_at.insert(record.request.concurrency);
            break;
    }
    if (options.answer_ended) options.answer_ended(record);
    run.records.push_back(std::move(record));
    tell(at);
}

void ClosedLoop::end_step(base::Instant at, net::Actions& out) {
    pace.step_done(current().concurrency, step_answers, base::to_seconds(at - step_started));
    if (budget_over) return all_done(at, out);
    if (server_is_gone()) return all_done(at, out);
    ++step;
    begin_step(at, out);
}

/// A whole step without a connection, or a single user who never got an answer: going on would only
/// hammer. For the control arm alone it ends that arm.
bool ClosedLoop::server_is_gone() {
    const answer::Experiment::Step ended = current();
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

void ClosedLoop::drop_arm(const std::string& arm) {
    auto& order = experiment().order;
    const auto gone =
        std::remove_if(order.begin() + static_cast<std::ptrdiff_t>(step) + 1, order.end(),
                       [&](const answer::Experiment::Step& s) { return s.arm == arm; });
    order.erase(gone, order.end());
}

/// Asks what would decide more, as long as the budget has room. False when there is nothing more to
/// do.
bool ClosedLoop::extend_plan(base::Instant at) {
    if (!options.next_batch || budget_over) return false;
    run.elapsed = at - origin;
    const auto batch = options.next_batch(run);
    if (!batch) return false;
    answer::Experiment longer = experiment();
    extend(longer, *batch);
    const auto answers = static_cast<int>(prompts_left()) * batch->repeats;
    const bool room =
        pace.cost(longer, experiment().order.size(), prompts_left()) <= budget_left_s(at);
    if (batches >= kMaxBatches || !room) {
        run.notes.push_back(
            fmt::format("{} more answers at {} users would decide more ({}); {}.", answers,
                        batch->concurrency, batch->why,
                        room ? "give a larger --repeat"
                             : "the budget has no room for them. Give a larger --budget"));
        return false;
    }
    ++batches;
    kept_repeats.reset();
    experiment() = std::move(longer);
    run.notes.push_back(fmt::format("Beyond the plan: {} answers at {} {}{}, because {}.", answers,
                                    batch->concurrency, batch->concurrency == 1 ? "user" : "users",
                                    batch->with_alone ? " and as many alone" : "", batch->why));
    return true;
}

void ClosedLoop::all_done(base::Instant at, net::Actions& out) {
    run.elapsed = at - origin;
    out.emplace_back(net::CancelTimer{kBudgetTimer});
    out.emplace_back(net::CancelTimer{kStaggerTimer});
    done = true;
    tell(at);
}

void ClosedLoop::interrupted(base::Instant at, net::Actions& out) {
    run.interrupted = true;
    pending.clear();
    abandon_all(at, out);
    all_done(at, out);
}

void ClosedLoop::abandon_all(base::Instant at, net::Actions& out) {
    auto open = std::exchange(flights, {});
    for (auto& [id, flight] : open) {
        flight->abandon(at, out);
        flight_over(at, *flight);
    }
}

void ClosedLoop::on_timer(net::TimerId id, const net::Event& event, net::Actions& out) {
    if (id == kBudgetTimer) return budget_fired(event.at, out);
    if (id == kStaggerTimer) return stagger(event.at, out);
    on_connection(id / 2, event, out);
}

/// First: no request starts any more. Second, after the grace: what still runs is closed.
void ClosedLoop::budget_fired(base::Instant at, net::Actions& out) {
    if (budget_over) {
        run.notes.push_back(
            fmt::format("{} answers still ran {:.0f} s after the budget's end and were closed by "
                        "us; they say nothing about the server.",
                        flights.size(), base::to_seconds(grace(experiment()))));
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
    out.emplace_back(net::SetTimer{kBudgetTimer, at + grace(experiment())});
}

void ClosedLoop::tell(base::Instant at) {
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
    : loop_(std::make_unique<ClosedLoop>(run, std::move(options))) {}
Probe::~Probe() = default;

void Probe::start(base::Instant now, net::Actions& out) { loop_->start(now, out); }

void Probe::on(const net::Event& event, net::Actions& out) {
    if (loop_->done) return;
    if (std::holds_alternative<net::Interrupted>(event.what))
        return loop_->interrupted(event.at, out);
    if (const auto* fired = std::get_if<net::TimerFired>(&event.what))
        return loop_->on_timer(fired->id, event, out);
    const net::ConnectionId id = std::visit(
        [](const auto& what) -> net::ConnectionId {
            if constexpr (requires { what.id; })
                return what.id;
            else
                return 0;
        },
        event.what);
    loop_->on_connection(id, event, out);
}

bool Probe::done() const { return loop_->done; }

}  // namespace fullstop::probe
