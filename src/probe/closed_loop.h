// The state of a probe under way: steps, users, what is still to send and what was left out.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "answer/run.h"
#include "net/event.h"
#include "probe/flight.h"
#include "probe/pace.h"
#include "probe/probe.h"

namespace fullstop::probe {

// Connections count from kFirstConnection, their timers are 2 x id and above; these stay below
// them.
inline constexpr net::TimerId kBudgetTimer = 0;
inline constexpr net::TimerId kStaggerTimer = 1;
inline constexpr net::ConnectionId kFirstConnection = 1;

/// Open to the files that make it up: probe.cc and trim.cc.
struct ClosedLoop {
    ClosedLoop(answer::Run& the_run, Options the_options)
        : run(the_run), options(std::move(the_options)) {}

    answer::Run& run;
    Options options;
    base::Instant origin{};
    bool done = false;

    std::size_t step = 0;           ///< index into experiment.order
    std::size_t planned_steps = 0;  ///< before any batch
    int batches = 0;
    std::deque<answer::Request> pending;
    std::map<net::ConnectionId, std::unique_ptr<Flight>> flights;
    net::ConnectionId next_id = kFirstConnection;
    int users = 0;          ///< of this step
    int users_started = 0;  ///< fewer than `users` while a staggered start is under way
    base::Instant step_started{};
    std::size_t step_answers = 0;  ///< ended in this step
    std::size_t step_refused = 0;  ///< of them, without a connection
    std::size_t step_empty = 0;    ///< of them, without any answer
    std::set<int> cut_at;          ///< levels of the deployed arm that lost an answer

    Pace pace;
    std::set<std::string> prompts_seen;
    std::set<std::string> prompts_dropped;
    std::optional<std::string> planned_shape;  ///< as it was before the first trim
    std::optional<int> kept_repeats;  ///< after a trim: repeats from this one on are left out
    bool budget_over = false;
    Progress progress;

    answer::Experiment& experiment() { return run.experiment; }
    const answer::Experiment::Step& current() const { return run.experiment.order[step]; }
    std::size_t prompts_left() const {
        return run.experiment.prompts.size() - prompts_dropped.size();
    }
    bool control(const std::string& arm) const { return arm == "control"; }

    void start(base::Instant now, net::Actions& out);
    void begin_step(base::Instant at, net::Actions& out);
    int admitted() const;
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
    bool cut_baseline_short();
    void say_reduced(double left_s);
    void tell(base::Instant at);
};

}  // namespace fullstop::probe
